"""Measurements of quality and speed, and their records.

Nothing in the product imports this but `kairos bench`.
"""
