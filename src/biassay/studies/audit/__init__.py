"""Name audits: scores and selection of documents when only the name changes."""
