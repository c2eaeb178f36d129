"""A study: which of two pronouns a language model expects in sentences about occupations."""
