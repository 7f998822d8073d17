"""Runs the cells of a suite and renders its records.

It writes pages of this repository.
"""
