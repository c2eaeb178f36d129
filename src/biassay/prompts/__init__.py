"""Sentences, prompts and parsers of responses."""
