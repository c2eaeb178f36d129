"""Stimuli: concepts, tests and templates, as data files, and their loader."""
