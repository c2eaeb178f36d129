"""Whole pipelines, each on one readable page: `associations` (WEAT, SEAT), `corpus` and `contextual` (CEAT)."""
