"""Backups: the database and the store as one directory."""
