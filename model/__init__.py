"""The recommender: encodings, encoders, bundles, inference.

No web, no SQL, no training loop.
"""
