"""Benchmarks that others made: their items, read from where the user has them."""
