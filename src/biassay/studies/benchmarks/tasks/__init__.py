"""Benchmark tasks."""
