"""Inspection of events before training: a profile of the data, and a recipe that suits it."""
