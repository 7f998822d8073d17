"""Reads the ablations, compares their records, and renders the page."""
