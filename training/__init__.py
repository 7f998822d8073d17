"""Training: from events to an evaluated bundle.

Imports no web framework; reads the service's database by SELECT only.
"""
