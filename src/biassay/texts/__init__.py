"""Asked as text: sentences from templates."""
