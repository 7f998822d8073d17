"""Code that every route shares: types, parsing, responses, problems, middleware, OpenAPI.

No domain logic, no SQL.
"""
