"""What every route shares: types, parsing, responses, problems, middleware.

No domain logic, no SQL.
"""
