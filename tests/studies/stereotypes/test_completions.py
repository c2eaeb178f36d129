"""The same tiny causal model, read here and behind an endpoint, gives the same ILPS and ILPS*."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models import api_server
from tests.models.api_server import Endpoint
from tests.models.causal_server import Causal, serving
from tests.models.tiny_models import save_tiny

import biassay
from biassay.errors import UsageError

from .asked_models import own_file

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("one_thread")]

no_key = api_server.no_key
MEASURES = ["ilps", "ilps-star"]
ASKED: dict[str, Any] = {"groups": ["north", "south"], "templates": ["own-that", "own-many"], "n_bootstrap": 10}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny("gpt2", tmp_path_factory.mktemp("m") / "tiny", head=True)


@pytest.fixture
def endpoint(folder: Path) -> Iterator[Endpoint]:
    with serving(Causal(folder)) as server:
        yield server


def name_of(server: Endpoint) -> str:
    return f"completions:toy?base_url={server.base}"


@pytest.mark.parametrize("way", ["echo", "prompt_logprobs"])
def test_an_endpoint_gives_what_the_model_itself_gives(
    endpoint: Endpoint, folder: Path, tmp_path: Path, way: Any
) -> None:
    files = own_file(tmp_path)
    endpoint.always = Causal(folder, way)
    there = biassay.stereotypes(name_of(endpoint), measures=MEASURES, files=files, **ASKED)
    here = biassay.stereotypes(f"hf:{folder}", measures=MEASURES, files=files, **ASKED)
    assert len(there.arrays) == len(here.arrays) > 0
    for name, values in here.arrays.items():
        np.testing.assert_allclose(there.arrays[name], values, atol=1e-4)
    assert np.isfinite(next(iter(here.arrays.values()))).any()
    before = len(endpoint.seen)
    biassay.stereotypes(name_of(endpoint), measures=MEASURES, files=files, **ASKED)
    assert len(endpoint.seen) == before


def test_the_sensitivity_test_is_refused_with_its_reason(endpoint: Endpoint, tmp_path: Path) -> None:
    files = own_file(tmp_path)
    with pytest.raises(UsageError, match="output layer"):
        biassay.stereotypes(name_of(endpoint), files=files, **ASKED)
    with pytest.raises(UsageError, match="released code"):
        biassay.stereotypes(name_of(endpoint), measures=MEASURES, variant="cao2022-code", files=files, **ASKED)
    assert endpoint.seen == []
