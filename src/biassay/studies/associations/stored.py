"""Check that a stored run of association tests agrees with itself: its names, and the effects that its arrays give."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from biassay.results.arrays import array_path
from biassay.results.checking import find_orphans, find_unknown, row_fault
from biassay.results.data import RunData, rows_by_model
from biassay.results.storage import RESULTS_JSON, Fault
from biassay.stats.meta import pooled_mean
from biassay.stimuli.model import ROLES
from biassay.studies.associations.averaging import associations_of_words, average_clusters, labels_of_words
from biassay.studies.associations.crossing import COSINES
from biassay.studies.associations.records import Result, Scale
from biassay.studies.associations.samples import SAMPLE_ARRAYS

__all__ = ["find_faults"]

Floats = NDArray[np.floating]
_BY_ROLE = ("num_words", "num_cut", "lost", "associations", "too_rare", "leave_one_out", "clusters", "undeclared")
_RELATIVE, _ABSOLUTE = 1e-6, 1e-9  # rounding differs between machines


def find_faults(run: RunData) -> Iterator[Fault]:
    """Yield tests and sets of words that are unknown, and effects that the arrays of the run do not give."""
    yield from find_unknown(run, "results", "test", {test.name for test in run.manifest.inputs.tests})
    yield from find_orphans(run, ("diagnostics",), "results", ("test",))
    for field in _BY_ROLE:
        yield from find_unknown(run, "results", field, ROLES)
    for field in ("tokens", "single", "frequency"):
        yield from find_unknown(run, "diagnostics", field, ROLES)
    for number, row in enumerate(run.tables.get("results", ())):
        for field in ("num_words", "num_cut", "lost"):
            missing = next((role for role in ROLES if role not in getattr(row, field)), None)
            if missing is not None:
                yield row_fault("results", number, field, f"nothing about the words {missing}")
    with np.errstate(all="ignore"):
        yield from _find_by_model(run)


def _find_by_model(run: RunData) -> Iterator[Fault]:
    arrays = run.arrays_by_model()
    results = rows_by_model(run.manifest.models, run.tables.get("results", ()))
    scales = rows_by_model(run.manifest.models, run.tables.get("scales", ()))
    for index, (of_tests, of_words) in enumerate(zip(results, scales, strict=True)):
        own, file = arrays.get(str(index), {}), array_path(str(index))
        for result in of_tests:
            for name, fault in (*_find_in_cosines(result, own), *_find_in_samples(result, own)):
                yield Fault(file if name in own else RESULTS_JSON, f"{name}: {fault}")
        for scale in of_words:
            for name, fault in _find_in_scale(scale, own):
                yield Fault(file if name in own else RESULTS_JSON, f"{name}: {fault}")


def _find_in_cosines(result: Result, arrays: Mapping[str, Floats]) -> Iterator[tuple[str, str]]:
    """Compare D and the association of every word with the cosines of the words."""
    name = f"{result.test}/{COSINES}"
    if result.D is None or result.searched:
        return
    words = {role: list(result.associations.get(role, ())) for role in ROLES}
    x, y, a, b = (len(words[role]) for role in ROLES)
    cosines = None if name not in arrays else np.asarray(arrays[name], dtype=np.float64)
    if cosines is None:
        yield name, f"there is no such array, and D is {result.D:.6g}"
    elif not (x and y and a and b) or cosines.shape != (x + y, a + b):
        yield name, f"its shape is {cosines.shape}, and the test has {x} + {y} target and {a} + {b} attribute words"
    elif not np.isfinite(cosines).all():
        yield name, "some of its values are not finite"
    else:
        labels = labels_of_words(words, result.clusters)
        table, (n, _, k, _) = average_clusters(cosines, (x, y, a, b), labels)
        sides = table[:, :k].mean(axis=1) - table[:, k:].mean(axis=1)
        D = float(sides[:n].mean() - sides[n:].mean())
        stored = [value for role in ROLES for value in result.associations[role].values()]
        found = np.concatenate(associations_of_words(cosines, (x, y, a, b), labels))
        if not _are_close([D], [result.D], cosines):
            yield name, f"the cosines give D = {D:.6g}, and {RESULTS_JSON} has {result.D:.6g}"
        elif not _are_close(found, stored, cosines):
            yield name, f"the cosines give other associations of words than {RESULTS_JSON}"


def _find_in_samples(result: Result, arrays: Mapping[str, Floats]) -> Iterator[tuple[str, str]]:
    """Compare the pooled effect over contexts with that of its samples."""
    names = [f"{result.test}/{name}" for name in SAMPLE_ARRAYS]
    if result.contextual is None or result.effect_size is None or result.searched:
        return
    missing = next((name for name in names if name not in arrays), None)
    if missing is not None:
        yield missing, f"there is no such array, and the test has {result.contextual.n_samples} samples"
        return
    effects, variances, p_values = (np.asarray(arrays[name], dtype=np.float64) for name in names)
    wrong = [name for name in names if arrays[name].shape != (result.contextual.n_samples,)]
    if wrong:
        yield wrong[0], f"its shape is {arrays[wrong[0]].shape}, and the test has {result.contextual.n_samples} samples"
        return
    if len(effects) < 3 or not np.isfinite(effects).all() or not (np.isfinite(variances) & (variances > 0.0)).all():
        yield (
            names[1],
            "the samples cannot be pooled: fewer than 3, not finite, or with a variance that is not positive",
        )
        return
    mean, error = pooled_mean(effects, variances)
    share = float((p_values <= result.alpha).mean())
    if not _are_close([mean, error], [result.effect_size, result.contextual.standard_error]):
        yield names[0], f"the samples give the effect size {mean:.6g}, not {result.effect_size:.6g}"
    elif not _are_close([share], [result.contextual.share_significant]):
        yield (
            names[2],
            f"a share of {share:.6g} of the samples is significant, not {result.contextual.share_significant:.6g}",
        )


def _find_in_scale(scale: Scale, arrays: Mapping[str, Floats]) -> Iterator[tuple[str, str]]:
    """Compare the standard deviation of cosines between frequent words with the cosines."""
    name, pairs = f"scales/{scale.form}", math.comb(len(scale.words), 2)
    values = arrays.get(name)
    if values is None:
        yield name, f"there is no such array, and the cosine SD is {scale.cosine_sd:.6g}"
    elif values.shape != (pairs,):
        yield name, f"its shape is {values.shape}, and {len(scale.words)} words have {pairs} pairs"
    elif not pairs or not np.isfinite(values).all():
        yield name, "it is empty, or some of its values are not finite"
    else:
        sd = float(np.std(values, dtype=np.float64))
        if not _are_close([sd], [scale.cosine_sd], values):
            yield name, f"the cosine SD of its values is {sd:.6g}, and {RESULTS_JSON} has {scale.cosine_sd:.6g}"


def _are_close(found: Sequence[float] | Floats, stored: Sequence[float], values: Floats | None = None) -> bool:
    size = 1.0 if values is None else max(1.0, float(np.abs(values).max(initial=0.0)))
    return bool(np.allclose(found, stored, rtol=_RELATIVE, atol=_ABSOLUTE * size, equal_nan=True))
