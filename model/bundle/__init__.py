"""The artifact on disk: manifest, catalogue, index, provenance.

Nothing here answers a query.
"""
