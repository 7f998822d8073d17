"""State that the process serves from: active models, item overlay, impressions, shutdown.

No HTTP, no SQL.
"""
