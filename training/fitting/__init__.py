"""The training loop, objectives, losses and checkpoints.

Measuring a model belongs to `training.evaluation`.
"""
