"""The database and the store as one directory, and back."""
