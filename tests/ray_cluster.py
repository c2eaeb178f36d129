"""Ray clusters simulated on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ["MARKS", "cluster_of"]

MARKS = [
    pytest.mark.extras,
    # Ray's own: sockets and files of processes that it ends by force.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
_MEMORY = 200_000_000  # bytes for the objects of a node


@contextmanager
def cluster_of(cores: Sequence[int]) -> Iterator[Any]:
    """Start nodes with these numbers of cores; the first is the driver's."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    made: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": cores[0], "object_store_memory": _MEMORY})
    for count in cores[1:]:
        made.add_node(num_cpus=count, object_store_memory=_MEMORY)
    yield made
    ray.shutdown()
    made.shutdown()
