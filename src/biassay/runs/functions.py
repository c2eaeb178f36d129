"""The functions that users call to measure models. Their keywords are the settings of the studies."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from biassay.engines.base import Engine
from biassay.errors import UnknownNameError
from biassay.runs.engine import How, start
from biassay.runs.listener import Listener, PathLike, Silent
from biassay.runs.resuming import go_on
from biassay.runs.run import Run
from biassay.stimuli.mappings import plain
from biassay.studies.registry import study_named
from biassay.studies.stereotypes.word_associations import MEASURES

__all__ = ["discover", "measure", "resume", "run", "run_ceat", "stereotypes"]


def run(
    models: object = ("use",),
    tests: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] = (),
    *,
    contexts: PathLike | None = None,
    metric: str = "cosine",
    protocol: str = "exact",
    alternative: str = "greater",
    alpha: float = 0.01,
    max_lost: float = 0.2,
    seed: int = 0,
    n_samples: int = 10_000,
    mode: str = "random",
    window: int | None = None,
    dtype: str = "float16",
    min_contexts: int = 5,
    vectors: PathLike | None = None,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Run:
    """Run association tests on models: WEAT on words, SEAT on sentences, CEAT on words in contexts.

    Parameters
    ----------
    models : str, object, list of them, or dict
        Model strings (``use``, ``glove``, ``vectors:PATH``, ...) or objects with ``encode(texts) -> array``; the keys
        of a dict name them in all results. Over contexts: strings of families that encode words in contexts
        (``hf:NAME``, ``elmo:DIR``).
    tests : str, dict of words, or list of them
        Names, patterns, topics, collections or files; or words: ``{"X": [...], "Y": [...], "A": [...], "B": [...]}``,
        with ``name`` and ``title`` beside them if you like, or such dicts by the names of the tests. By default the
        tests of the main collections; over contexts those for which the contexts were collected.
    contexts : path, optional
        A file made by ``biassay contexts``: words are measured in these contexts.
    metric : str
        How vectors become associations: ``cosine``, or one that another package adds.
    protocol, alternative : str
        How p-values are found, see `biassay.weat`.
    alpha : float
        Level of significance, before and after Holm's correction over all rows.
    max_lost : float
        The largest share of a concept's words that a model may not know before the test is refused.
    seed : int
        For the protocols that sample, and for the draws of contexts.
    n_samples, mode, window, dtype, min_contexts, vectors
        Over contexts only. Samples of one context per word; whether every model draws its own contexts ("random") or
        all get the same ("fixed"); words kept around the word, by default the whole sentence; the type in which
        vectors are kept; the number of contexts below which a word is lost; a folder for the vectors, instead of the
        cache.
    out : path, optional
        A new folder to write the run to, as it goes.
    cache : path, optional
        Where answers are kept; by default the user's cache folder.
    engine : Engine, optional
        Where models run; by default here.
    listener : Listener, optional
        Gets progress and notices.

    Returns
    -------
    Run

    References
    ----------
    .. [1] Caliskan, A., Bryson, J. J., and Narayanan, A. (2017). Semantics derived automatically from language corpora
       contain human-like biases. Science, 356(6334), 183-186.
    .. [2] May, C., Wang, A., Bordia, S., Bowman, S. R., and Rudinger, R. (2019). On measuring social biases in sentence
       encoders. NAACL-HLT, 622-628.
    .. [3] Guo, W., and Caliskan, A. (2021). Detecting emergent intersectional biases: contextualized word embeddings
       contain a distribution of human-like biases. AIES, 122-133.

    Examples
    --------
    >>> import biassay
    >>> found = biassay.run("glove", "weat6")
    >>> round(found.results[0].effect_size, 2)
    1.72
    """
    given = {"tests": _several(tests), "contexts": _path(contexts), "vectors": _path(vectors)}
    return _measured("associations", models, locals(), given)


def run_ceat(models: object, contexts: PathLike, tests: Any = (), **settings: Any) -> Run:
    """Run association tests over contexts: `biassay.run` with ``contexts``.

    Parameters
    ----------
    models, contexts, tests, **settings
        As in `biassay.run`.

    Returns
    -------
    Run
    """
    return run(models, tests, contexts=contexts, **settings)


def discover(
    models: object = ("glove",),
    group: str | Sequence[str] = (),
    *,
    groups: PathLike = "guo2021-groups",
    words: PathLike | Iterable[str] | None = None,
    threshold: float | None = None,
    rule: str = "any",
    compare: str = "any",
    positive_only: bool = True,
    n_permutations: int = 99_999,
    alpha: float = 0.05,
    max_lost: float = 0.34,
    keep: int = 1000,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Run:
    """Find the words that models associate with intersectional groups (IBD), and with no category of them (EIBD).

    Parameters
    ----------
    models : str, object, list of them, or dict
        As in `biassay.run`.
    group : str or list of str
        The groups to look at; each is compared with all others of its grouping.
    groups : str or path
        The grouping: a name of the catalogue or a TOML file with ``[groups.NAME]``.
    words : path or list of str, optional
        The words to search, one a line in a file. By default the whole vocabulary of word vectors; of other models
        the 20,000 words that the embedded vectors have as most frequent.
    threshold : float, optional
        Scores above it count. By default the one that fits the validated words of the group best, or 0.8 where there
        are none.
    rule : {"any", "all"}
        Whether a word is emergent only if no constituent score is above the threshold, or unless all are.
    compare : {"any", "every"}
        Whether a word must score above the threshold against at least one other group, which is IBD, or against every
        other group.
    positive_only : bool
        Whether only positive thresholds are chosen from, as the paper says.
    n_permutations : int
        How often names are permuted between the groups, at most; the smallest p-value is 1 / (n_permutations + 1).
    alpha : float
        The share of false findings that is accepted among those reported, over the whole vocabulary.
    max_lost : float
        The largest share of a group's names that a model may not know.
    keep : int
        How many of the words that rank highest are kept, of each list.
    seed : int
        Of the permutations.
    out, cache, engine, listener
        As in `biassay.run`.

    Returns
    -------
    Run

    Notes
    -----
    p-values permute names among the groups and are corrected by Benjamini and Hochberg over all words.

    References
    ----------
    .. [1] Guo, W., and Caliskan, A. (2021). Detecting emergent intersectional biases: contextualized word embeddings
       contain a distribution of human-like biases. AIES, 122-133.

    Examples
    --------
    >>> import biassay
    >>> words = ["sassy", "loud", "engineer"]
    >>> found = biassay.discover("glove", "african-american-females", words=words, n_permutations=99)
    >>> [row.word for row in found.results]
    ['sassy', 'loud', 'engineer']
    """
    a_file = words is None or isinstance(words, str | os.PathLike)
    given = {
        "group": _several(group),
        "groups": _file_or_name(groups),
        "words": _path(words) if a_file else None,  # type: ignore[arg-type]
        "own_words": None if a_file else tuple(map(str, words)),  # type: ignore[arg-type]
    }
    return _measured("discovery", models, locals(), given)


def stereotypes(
    models: object,
    *,
    measures: str | Sequence[str] = MEASURES,
    groups: str | Sequence[str] = (),
    templates: str | Sequence[str] = (),
    files: PathLike | Sequence[PathLike] = (),
    contexts: PathLike | None = None,
    min_contexts: int = 5,
    human: PathLike | None = None,
    annotators: Sequence[tuple[str, str]] = (),
    prior: str = "mask",
    variant: str = "paper",
    all_adjectives: bool = False,
    intersections: bool = False,
    n_bootstrap: int = 1000,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Run:
    """What language models associate with social groups along agency, beliefs and communion, and whether people agree.

    Parameters
    ----------
    models : str, list of str, or dict from names
        Masked or causal language models, ``hf:NAME``; for ``ceat`` alone any model of words in contexts (``elmo:DIR``).
    measures : str or list of str
        Of ``ilps``, ``ilps-star``, ``set`` and ``ceat``; the first three by default.
    groups, templates : list of str
        Names, patterns, domains or kinds; all by default.
    files : list of path
        TOML files that add groups, traits or templates.
    contexts : path, optional
        For ``ceat``: a file made by ``biassay contexts --abc``.
    min_contexts : int
        For ``ceat``: a group or an adjective with fewer contexts is left out.
    human : path, optional
        Human judgements: means, or the ratings of annotators.
    annotators : list of (field, value)
        Further alignments with annotators of one kind only, where the file says what they are.
    prior : {"mask", "word"}
        What a group is compared with: the group masked, or "person" and "people". Causal models have no mask.
    variant : {"paper", "cao2022-code"}
        Form of the measures: the paper's, or that of the code released with it.
    all_adjectives : bool
        Whether a trait is the median over all its adjectives, instead of its own only.
    intersections : bool
        Whether groups are also paired.
    n_bootstrap : int
        Samples of the bootstrap and of the split halves.
    seed : int
        Of these, and of the pilot's annotators.
    out, cache, engine, listener
        As in `biassay.run`.

    Returns
    -------
    Run

    References
    ----------
    .. [1] Cao, Y. T., Sotnikova, A., Daumé III, H., Rudinger, R., and Zou, L. (2022). Theory-grounded measurement of
       U.S. social stereotypes in English language models. NAACL, 1276-1295.
    """
    given = {
        "measures": _several(measures),
        "groups": _several(groups),
        "templates": _several(templates),
        "files": tuple(map(_path, (files,) if isinstance(files, str | os.PathLike) else files)),
        "contexts": _path(contexts),
        "human": _path(human),
        "annotators": tuple((str(field), str(value)) for field, value in annotators),
    }
    return _measured("stereotypes", models, locals(), given)


def measure(
    study: str,
    models: object,
    settings: Mapping[str, Any] | None = None,
    *,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    vectors: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Run:
    """Measure models by any study, also of another package.

    Parameters
    ----------
    study : str
        Its name.
    models : str, object, list of them, or dict
        As in `biassay.run`.
    settings : mapping, optional
        Settings of the study.
    out, cache, vectors, engine, listener
        As in `biassay.run`.

    Returns
    -------
    Run

    Examples
    --------
    >>> import biassay
    >>> biassay.measure("associations", "glove", {"tests": ("weat6",)})["weat6"].results[0].test
    'weat6'
    """
    chosen, given = study_named(study), settings or {}
    known = [field.name for field in dataclasses.fields(chosen.types.settings)]
    for name in given:
        if name not in known:
            raise UnknownNameError(f"setting of {study}:", name, known, f"(settings: {', '.join(known)})")
    how = How(out, cache, vectors, engine, listener or Silent())
    return Run.of(start(chosen, chosen.types.settings(**given), models, how))


def resume(
    folder: PathLike,
    models: object = None,
    *,
    cache: PathLike | None = None,
    vectors: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Run:
    """Go on with an interrupted run of any study; what it has measured is kept.

    Parameters
    ----------
    folder : path
        The folder of the run.
    models : str, object, list of them, or dict from names, optional
        Models of the run, given again: objects, and strings that run code (``python:``, ``trust_remote_code``) or send
        texts away (``api:``). Those are never taken from the folder.
    cache, engine, listener
        As in `biassay.run`.
    vectors : path, optional
        The folder of vectors, where the run had one.

    Returns
    -------
    Run

    Examples
    --------
    >>> import biassay
    >>> _ = biassay.run("glove", "weat6", out="a-run")
    >>> round(biassay.resume("a-run").results[0].effect_size, 2)  # complete: nothing is left to measure
    1.72
    """
    return Run.of(go_on(Path(folder), models, How(None, cache, vectors, engine, listener or Silent())))


def _measured(name: str, models: object, keywords: Mapping[str, Any], given: Mapping[str, Any]) -> Run:
    """A run by the keywords of a function; ``given`` are those that are not stored as they come."""
    study = study_named(name)
    names = [field.name for field in dataclasses.fields(study.types.settings)]
    settings = study.types.settings(**{n: {**keywords, **given}[n] for n in names if n in keywords or n in given})
    vectors = keywords.get("vectors")
    how = How(keywords["out"], keywords["cache"], vectors, keywords["engine"], keywords["listener"] or Silent())
    return Run.of(start(study, settings, models, how))


def _several(given: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]) -> tuple[Any, ...]:
    """One or several texts or dicts, as a manifest keeps them."""
    several = (given,) if isinstance(given, str | Mapping) else tuple(given)
    return tuple(plain(one) if isinstance(one, Mapping) else one for one in several)


def _file_or_name(given: PathLike) -> str:
    """A name as it is; a file by its whole path."""
    text = os.fspath(given)
    return os.path.abspath(text) if text.lower().endswith(".toml") else text


def _path(given: PathLike | None) -> str | None:
    """A path that is the same wherever a run goes on."""
    return None if given is None else os.path.abspath(given)
