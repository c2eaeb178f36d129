"""Who is asked: one file per family of models, and the only room that imports their libraries."""
