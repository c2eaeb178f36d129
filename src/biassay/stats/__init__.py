"""Statistics on arrays, with NumPy and SciPy only."""
