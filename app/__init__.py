"""The HTTP service.

It answers from published bundles and stored events; it never trains.
"""
