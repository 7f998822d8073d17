"""Metrics, logs and their redaction.

Nothing here knows a domain.
"""
