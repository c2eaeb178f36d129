"""Word association tests of chat or instruct models."""
