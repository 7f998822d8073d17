"""Versions of bundles in a directory: publish, activate, open.

Nothing here answers a query.
"""
