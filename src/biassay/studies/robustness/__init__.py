"""Robustness of association tests to analysis choices."""
