"""Text to numbers: one file per model family, and the only room that imports a deep-learning library."""
