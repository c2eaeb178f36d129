"""An example of what another package can add to biassay."""

from importlib.resources import files

__all__ = ["TESTS"]

TESTS = files("biassay_example") / "workplaces.toml"
