"""Runs: fetch model outputs, measure, save and resume, for every study."""
