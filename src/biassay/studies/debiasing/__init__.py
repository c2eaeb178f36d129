"""Erase a concept from a model, and measure what is gone, what is left and what is lost."""
