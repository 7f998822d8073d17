"""The engine over an open bundle: recommendations, rankings, sweeps.

Nothing here reads or writes files.
"""
