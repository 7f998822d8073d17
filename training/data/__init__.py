"""Events on their way to batches: sources, dataset, split, windows, negatives.

No model is fitted here.
"""
