"""The human study: what people say about groups, asked in a browser and kept in a database."""
