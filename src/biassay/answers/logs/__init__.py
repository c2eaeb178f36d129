"""Answers to benchmarks that other tools asked for, read from their logs."""
