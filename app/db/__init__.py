"""Engine, tables, transactions, and the queries that several domains share.

Other queries are in the repository of their domain.
"""
