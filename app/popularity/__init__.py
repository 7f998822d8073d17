"""Popularity of items, counted from the stored events as they arrive."""
