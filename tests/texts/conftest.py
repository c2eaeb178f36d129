"""The tests of the corpus scan need its extra; without it they are not collected."""

from importlib.util import find_spec

_NAMES = ("contexts", "corpus", "matching", "sampling", "scanning", "skimming")
collect_ignore = [] if find_spec("pyarrow") and find_spec("numba") else [f"test_{name}.py" for name in _NAMES]
