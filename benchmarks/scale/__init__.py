"""Measurements of what one machine does at sizes that one machine no longer serves comfortably."""
