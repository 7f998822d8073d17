"""Engine, tables and transactions.

Queries live in the repository of their domain.
"""
