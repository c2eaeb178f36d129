"""Stereotypes of social groups in language models: ILPS, ILPS*, SeT and group CEAT."""
