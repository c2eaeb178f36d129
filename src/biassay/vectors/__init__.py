"""Numbers at rest: a content-addressed store of vectors, written once and resumed after a crash."""
