"""Association tests: WEAT, SEAT and CEAT."""
