"""Example plugin: a model backend, a metric, an outcome, a study and a benchmark for biassay."""

from importlib.resources import files

__all__ = ["TESTS"]

TESTS = files("biassay_example") / "workplaces.toml"
