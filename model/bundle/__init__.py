"""The published artifact and its files: manifest, catalogue, index, weights, provenance."""
