"""The batch retraining job: challenger, comparison, gate, report.

The training itself is `training.run`.
"""
