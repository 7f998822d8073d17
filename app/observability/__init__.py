"""Metrics, logs and their redaction.

Nothing here depends on a domain.
"""
