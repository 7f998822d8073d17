"""The pages and plots of the paper benchmarks, rendered from their records."""
