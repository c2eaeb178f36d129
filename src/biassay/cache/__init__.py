"""Cached model outputs."""
