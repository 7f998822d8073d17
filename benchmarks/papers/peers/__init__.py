"""Other libraries' models on the questions of a suite, ranked by the metrics of this project.

`run.validate_peer` writes a split as files, runs a library in its own environment, and returns its
learning curve; `run.run_peer` fits it for the test, and ranks its scores.
"""
