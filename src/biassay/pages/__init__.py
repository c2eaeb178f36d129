"""Shown to a person. Reads results and nothing else."""
