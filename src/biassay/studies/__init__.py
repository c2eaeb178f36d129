"""Studies: one folder per kind of measurement."""
