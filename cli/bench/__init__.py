"""`kairos bench`: runs the benchmarks and renders their pages."""
