"""Requests as text: sentences from templates, contexts from corpora, prompts."""
