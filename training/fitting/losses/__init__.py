"""Losses, one file per family, as functions of tensors: they do not import the model."""
