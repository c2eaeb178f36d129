"""Word association tests of models that answer."""
