"""Answers of models: stored by the content of the request, and by row of a file of contexts; resumed after a crash."""
