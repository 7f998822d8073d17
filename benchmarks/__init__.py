"""Benchmarks of quality and speed, and their records; only `kairos bench` imports them."""
