"""Arrays to statistics: NumPy and SciPy only. No files, no logging, no models, no globals."""
