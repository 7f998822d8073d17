"""ASGI middleware around every request, one class per file. `app.main` sets their order."""
