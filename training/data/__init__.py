"""From events to batches: sources, data set, split, windows, negatives."""
