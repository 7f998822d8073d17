"""The batch retraining job: candidate, comparison, gate, report.

The training itself is `training.run`.
"""
