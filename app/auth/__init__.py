"""Authentication, roles and rate limits.

The routes and commands that manage keys are in `app.keys`.
"""
