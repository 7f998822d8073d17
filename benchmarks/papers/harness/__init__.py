"""The harness of the paper benchmarks: runs the cells of a suite, and reads their records."""
