"""Model backends; only this package imports their libraries."""
