"""Models: one file per family, and the only room that imports their libraries."""
