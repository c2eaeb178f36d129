"""Robustness of word associations and benchmarks of models that respond to prompts."""
