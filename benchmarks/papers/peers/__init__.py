"""Other libraries' models on the questions of a suite, ranked by the metrics of this project.

`run.run_peer` writes a split as files, runs a library in its own environment, and ranks its scores.
"""
