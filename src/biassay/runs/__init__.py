"""From request to run: the one engine that asks, keeps, measures, saves and resumes, for every study."""
