"""The published artifact and its files: manifest, catalog, index, weights, provenance."""
