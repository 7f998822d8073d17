"""Inference with an open bundle: recommendations, rankings, sweeps, similar items.

Nothing here reads or writes files.
"""
