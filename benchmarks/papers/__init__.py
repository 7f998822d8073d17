"""The papers' tables: suites, records of cells, the rendered page."""
