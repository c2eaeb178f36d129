"""Web application and database of the human study."""
