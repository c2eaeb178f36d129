"""Robustness: what an association survives."""
