"""Metrics, scoring, reference rankers, reports, latency.

Nothing here changes a model's weights.
"""
