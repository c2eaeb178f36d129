"""Migrations of the survey database."""
