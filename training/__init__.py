"""From events to a measured bundle.

No web; the service's database is read by plain SELECT only.
"""
