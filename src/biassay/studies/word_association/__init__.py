"""Word association tests of chat and instruct models."""
