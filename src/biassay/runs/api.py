"""Public functions that run a study: `run`, `discover`, `stereotypes`, `ask`, `benchmark`, `measure`, `resume`.

Signatures are written out, so that editors, type checkers and `help` show them; a test compares names, defaults and
options with the settings of each study.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec

from biassay.engines.base import Executor
from biassay.errors import UnknownNameError
from biassay.models.token_budget import TokenBudget
from biassay.runs.fetch import RunOptions
from biassay.runs.progress import Listener, PathLike, default_listener
from biassay.runs.run import Run
from biassay.runs.runner import resume_run, run_study
from biassay.stats.association import SIMILARITIES
from biassay.studies.registry import get_study
from biassay.studies.robustness.settings import DEFAULT_SYSTEMS
from biassay.studies.stereotypes.ilps import MEASURES
from biassay.studies.word_association.settings import DEFAULT_N_REPLIES

_P = ParamSpec("_P")
_RUN_PARAMETERS = ("out", "cache", "engine", "listener", "budget")
Tests = str | PathLike | Mapping[str, Any] | Sequence[str | PathLike | Mapping[str, Any]]


def measure(
    study: str,
    models: object,
    settings: Mapping[str, Any] | None = None,
    *,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Executor | None = None,
    listener: Listener | None = None,
    budget: int | None = None,
) -> Run:
    """Run a study by its name, including studies of other packages.

    Parameters
    ----------
    study : str
        Name of the study.
    models : str, object, list of them, or dict
        Models, as in `biassay.run`.
    settings : mapping, optional
        Settings of the study; the others have their defaults.
    out, cache, engine, listener
        As in `biassay.run`.
    budget : int, optional
        Largest number of tokens that endpoints may use. The run stops before it exceeds the budget and can be resumed.

    Returns
    -------
    Run

    Examples
    --------
    >>> import biassay
    >>> biassay.measure("associations", "glove", {"tests": ("weat6",)})["weat6"].results[0].test
    'weat6'
    """
    chosen, given = get_study(study), settings or {}
    known = [field.name for field in dataclasses.fields(chosen.schema.settings)]
    for name in given:
        if name not in known:
            raise UnknownNameError(f"setting of {study}:", name, known, f"(settings: {', '.join(known)})")
    if given.get("scores") is not None and not models:
        models = _name_logged_model(given["scores"])
    options = RunOptions(out, cache, given.get("vectors"), engine, listener or default_listener(), TokenBudget(budget))
    return Run.from_data(run_study(chosen, chosen.schema.settings(**given), models, options))


def resume(
    folder: PathLike,
    models: object = None,
    *,
    cache: PathLike | None = None,
    vectors: PathLike | None = None,
    engine: Executor | None = None,
    listener: Listener | None = None,
    budget: int | None = None,
) -> Run:
    """Continue an interrupted run of any study, without measuring anything twice.

    Parameters
    ----------
    folder : path
        Folder of the run.
    models : str, object, list of them, or dict, optional
        Models that biassay does not take from the folder: objects, and strings that run code (``python:``,
        ``trust_remote_code``) or send texts away (``api:``, ``chat:``, ``completions:``).
    cache, engine, listener
        As in `biassay.run`.
    vectors : path, optional
        Folder of context vectors, if the run had one.
    budget : int, optional
        Largest number of tokens that endpoints may use in the whole run, including earlier processes. By default the
        budget of the run.

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
    options = RunOptions(None, cache, vectors, engine, listener or default_listener(), TokenBudget(budget))
    return Run.from_data(resume_run(Path(folder), models, options))


def _measures(
    study: str, prepare: Callable[[dict[str, Any]], dict[str, Any]] = dict
) -> Callable[[Callable[_P, Run]], Callable[_P, Run]]:
    """Create a decorator for the public function of a study, which has its settings as parameters and no body.

    Parameters
    ----------
    study : str
    prepare : callable
        Function from the arguments to the settings.
    """

    def decorate(function: Callable[_P, Run]) -> Callable[_P, Run]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def measure_study(*args: _P.args, **kwargs: _P.kwargs) -> Run:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            settings = dict(bound.arguments)
            common = {name: settings.pop(name) for name in _RUN_PARAMETERS if name in settings}
            return measure(study, settings.pop("models"), prepare(settings), **common)

        return measure_study

    return decorate


def _split_words(settings: dict[str, Any]) -> dict[str, Any]:
    """Separate words that were given as a list from a file of words."""
    words = settings["words"]
    if words is None or isinstance(words, str | os.PathLike):
        return settings
    return {**settings, "words": None, "own_words": tuple(map(str, words))}


def _name_logged_model(scores: PathLike) -> str:
    """Return the model string of logged scores, labelled with the file's name."""
    path = Path(scores).expanduser().absolute()
    return f"{path.name.replace('=', '-')}=scores:{path}"


@_measures("associations")
def run(
    models: object = ("use",),
    tests: Tests = (),
    *,
    language: str | Sequence[str] = (),
    contexts: PathLike | None = None,
    metric: str = "cosine",
    protocol: str = "exact",
    alternative: str = "greater",
    alpha: float | None = None,
    family: str | Sequence[str] = "run",
    equivalence: float | None = None,
    random_sets: int = 1000,
    max_unknown: float = 0.2,
    max_tokens: float = 5.0,
    seed: int = 0,
    n_samples: int = 10_000,
    mode: str = "random",
    window: int | None = None,
    dtype: str = "float16",
    min_contexts: int = 5,
    vectors: PathLike | None = None,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Executor | None = None,
    listener: Listener | None = None,
) -> Run:
    """Run association tests on models: WEAT on words, SEAT on sentences, CEAT on words in contexts.

    Parameters
    ----------
    models : str, object, list of them, or dict
        Model strings (``use``, ``glove``, ``vectors:PATH``, ...) or objects with ``encode(texts) -> array``. The keys
        of a dict are labels. With `contexts`, models that encode words in context (``hf:NAME``, ``elmo:DIR``).
    tests : str, path, dict of words, or list of them
        Names, patterns, topics, collections or files; or words: ``{"X": [...], "Y": [...], "A": [...], "B": [...]}``,
        optionally with ``name`` and ``title``, or a dict of such dicts by test name. By default the main collections,
        or with `contexts` the tests for which the contexts were collected.
    language : str or list of str
        Codes of languages (``"de"``) or ``"all"``: run their tests of WEATHub, or those that `tests` names.
    contexts : path, optional
        File that ``biassay contexts`` wrote: measure words in these contexts.
    metric : str
        Metric that turns vectors into associations: ``cosine``, another one that ``biassay metrics`` lists, or ``all``
        for ``cosine`` and every other measure beside it.
    protocol : str
        How to compute p-values, see `biassay.weat`.
    alternative : {"greater", "two-sided"}
        Direction of the permutation tests. The main p-value is always two-sided.
    alpha : float, optional
        Significance level, before and after Holm's correction. By default 0.05, or 0.01 under the papers' protocols.
        Intervals have confidence 1 - alpha.
    family : str or list of str
        Questions to correct for: ``"run"`` for all social-bias questions of this run, per model, or tests declared in
        advance: ``"default"``, names, patterns, topics, collections or files. Declared questions count even if they
        are not run; tests outside the family are exploratory and never significant.
    equivalence : float, optional
        Negligible difference of mean cosines, below 2. If given, compute a p-value for D being smaller.
    random_sets : int
        Number of random word sets for the random baseline. Use 0 to skip it.
    max_unknown : float
        Skip a test if more than this share of a word set is out of vocabulary.
    max_tokens : float
        Skip a test in another language than English if its words have more tokens than this on average.
    seed : int
        Random seed.
    n_samples : int
        Number of samples of one context per word. This and the parameters up to `vectors` apply with `contexts` only.
    mode : {"random", "fixed"}
        How to sample contexts: independently per model, or the same for all models.
    window : int, optional
        Number of words to keep around a word. By default the whole sentence.
    dtype : {"float16", "float32"}
        Type in which to store context vectors.
    min_contexts : int
        Drop words that occur in fewer contexts.
    vectors : path, optional
        Folder for context vectors, instead of the cache.
    out : path, optional
        New folder to which the run is written while it progresses.
    cache : path or URL, optional
        Cache directory or URL (``s3://BUCKET/DIR``). By default the user's cache directory.
    engine : Executor, optional
        Where models run. By default in this process.
    listener : Listener, optional
        Receives progress and notices.

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
    >>> result = biassay.run("glove", "weat6")
    >>> round(result.results[0].effect_size, 2)
    1.72
    """
    raise NotImplementedError


@_measures("audit")
def audit(
    models: object = (),
    documents: PathLike | None = None,
    *,
    query: PathLike | Sequence[PathLike] = (),
    names: PathLike = "census2020",
    by: str | Sequence[str] = (),
    n_names: int | None = None,
    match: str | Sequence[str] = (),
    surnames: bool = False,
    pronouns: str = "group",
    question: str | None = None,
    answer: str | None = None,
    candidates: int | None = None,
    prompts: PathLike | None = None,
    outcome: str | Sequence[str] = (),
    judge: str | None = None,
    human: PathLike | None = None,
    role: str = "subject",
    n_responses: int | None = None,
    scores: PathLike | None = None,
    top: float | Sequence[float] = (0.1, 0.2, 0.5),
    pairs: str | Sequence[str] = (),
    alpha: float = 0.05,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Executor | None = None,
    listener: Listener | None = None,
    budget: int | None = None,
) -> Run:
    r"""Test whether scores or selection change when only the name in a document changes.

    Parameters
    ----------
    models : str, object, function, list of them, or dict
        Models that encode texts: scores are cosines of query and document. Language models: log-odds of Yes against No.
        Or functions ``score(texts)`` or ``score(queries, documents)`` that return one number per text. No model with
        `scores`.
    documents : path
        Folder of .txt or .md files with one document each, .txt file with one document per line, or table. ``{name}``
        is the placeholder for the name.
    query : str, path, or list of them
        Texts or files to compare documents with. By default the folder ``queries`` beside the documents, if there is
        one. Scores of several queries are averaged, and reported one by one.
    names : str or path
        List to draw names from: ``census2020``, another bundled list, or a file with columns name and group.
    by : str or list of str
        Columns that define the groups. By default group, or race and sex.
    n_names : int, optional
        Number of names per group. By default 20 from the Census and all names of other lists.
    match : str or list of str
        Properties that names are matched for across groups: ``frequency``, ``tokens`` or both. By default frequency if
        the list has counts, and tokens if all models have a tokenizer.
    surnames : bool
        If True, add surnames that say little about race, the same ones to every group.
    pronouns : {"group", "neutral"}
        Whether pronouns follow the sex of the name or are always they.
    question : str, optional
        Question with the placeholder ``{document}``, and optionally ``{query}``, whose answer Yes is scored.
    answer : {"yes-no", "rating", "choice"}, optional
        Collect responses to the question and parse this kind of answer. By default, log-odds of Yes are scored.
    candidates : int, optional
        Number of candidates that each prompt of ``answer="choice"`` compares. By default one per group, at most 4.
    prompts : str or path, optional
        Prompts for texts: a bundled set such as ``recommendation-letter``, or a file with ``{name}`` in each
        prompt.
    outcome : str or list of str
        Outcomes of the texts to compare, such as ``length``; by default those that suit the prompts. Refusals are
        always compared.
    judge : str, optional
        Model that scores texts for the outcomes ``judge:RUBRIC`` and ``compare:RUBRIC``. Names are masked.
    human : path, optional
        Labels of some responses by people, which correct the ratings of the judge: ``ratings.json`` of a survey of
        responses.
    role : {"subject", "user"}
        Whether the name is that of the person in the document or prompt, or the user's: the prompt then begins with
        "My name is".
    n_responses : int, optional
        Number of responses to each prompt. By default 1 per decision, and 5 texts per name and prompt.
    scores : path, optional
        Table of logged scores with columns document, name, group and score, and optionally query, unit and selected.
    top : float or list of float
        Shares of all name-document pairs that count as selected, those with the highest scores.
    pairs : str or list of str
        Pairs of groups to compare, such as ``"Black female:White male"``.
    alpha : float
        Significance level. Intervals have confidence 1 - alpha.
    seed : int
        Random seed.
    out, cache, engine, listener
        As in `biassay.run`.
    budget : int, optional
        Largest number of tokens that endpoints may use. The run stops before it exceeds the budget and can be resumed.

    Returns
    -------
    Run

    Notes
    -----
    Names and documents are both samples: intervals and p-values hold for other names and documents of the same kinds,
    see `biassay.name_audit`.

    Examples
    --------
    >>> import biassay
    >>> with open("reports.txt", "w") as file:
    ...     _ = file.write("{name} is a nurse.\n{name} is an engineer.\n{name} is a clerk.")
    >>> run = biassay.audit("glove", "reports.txt", query="We need an engineer.", names="weat6")
    >>> [row.group for row in run.results]
    ['female', 'male']
    """
    raise NotImplementedError


@_measures("discovery", prepare=_split_words)
def discover(
    models: object = ("glove",),
    groups: str | Sequence[str] = (),
    *,
    grouping: PathLike = "guo2021-groups",
    words: PathLike | Iterable[str] | None = None,
    threshold: float | None = None,
    rule: str = "any",
    compare: str = "any",
    positive_only: bool = True,
    n_permutations: int = 99_999,
    alpha: float = 0.05,
    max_unknown: float = 0.34,
    keep: int = 1000,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Executor | None = None,
    listener: Listener | None = None,
) -> Run:
    """Find words that models associate with intersectional groups (IBD) but with none of their categories (EIBD).

    Parameters
    ----------
    models : str, object, list of them, or dict
        As in `biassay.run`.
    groups : str or list of str
        Groups to search words for. Each is compared with all other groups of its grouping.
    grouping : str or path
        Name of a grouping in the catalogue, or a TOML file with ``[groups.NAME]``.
    words : path or list of str, optional
        Words to search, or a file with one word per line. By default the whole vocabulary of word vectors; for other
        models the 20,000 most frequent words of the embedded vectors.
    threshold : float, optional
        Count scores above this threshold. By default the threshold that fits the validated words of the group best,
        or 0.8 if it has none.
    rule : {"any", "all"}
        Exclude a word from the emergent ones if any, or only if all, of its constituent scores exceed the threshold.
    compare : {"any", "every"}
        Require a score above the threshold against at least one other group (IBD), or against every other group.
    positive_only : bool
        If True, choose among positive thresholds only, as in the paper.
    n_permutations : int
        Largest number of permutations of names between groups. The smallest p-value is 1 / (n_permutations + 1).
    alpha : float
        False discovery rate over the whole vocabulary.
    max_unknown : float
        Skip a group if more than this share of its names is out of vocabulary.
    keep : int
        Number of highest-ranked words of each list to keep in the results.
    seed : int
        Random seed.
    out, cache, engine, listener
        As in `biassay.run`.

    Returns
    -------
    Run

    Notes
    -----
    p-values permute names among the groups; the Benjamini-Hochberg correction covers all words.

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
    raise NotImplementedError


@_measures("stereotypes")
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
    engine: Executor | None = None,
    listener: Listener | None = None,
    budget: int | None = None,
) -> Run:
    """Measure what language models associate with social groups (ABC model) and how well human ratings agree.

    Parameters
    ----------
    models : str, list of str, or dict
        Masked or causal language models, ``hf:NAME``. For ``ilps`` and ``ilps-star`` also ``completions:NAME``, if the
        endpoint returns log-probabilities of texts; for ``ceat`` alone any model of words in context (``elmo:DIR``).
    measures : str or list of str
        Any of ``ilps``, ``ilps-star``, ``set`` and ``ceat``. By default the first three.
    groups, templates : str or list of str
        Names, patterns, domains or kinds. By default all.
    files : path or list of path
        TOML files that add groups, traits or templates.
    contexts : path, optional
        File that ``biassay contexts --abc`` wrote, for ``ceat``.
    min_contexts : int
        Drop groups and adjectives that occur in fewer contexts, for ``ceat``.
    human : path, optional
        Human judgements: means, or the ratings of annotators.
    annotators : list of (field, value)
        Also compare with the annotators of one kind only, if the file describes its annotators.
    prior : {"mask", "word"}
        Compare a group with a masked group, or with "person" and "people". Causal models have no mask.
    variant : {"paper", "cao2022-code"}
        Compute the measures as in the paper, or as in the code released with it.
    all_adjectives : bool
        If True, a trait is the median over all its adjectives instead of its first one.
    intersections : bool
        If True, also measure pairs of the selected groups, such as Asian teenagers. If all are of one domain, pair
        them with all other groups.
    n_bootstrap : int
        Number of samples for the bootstrap and the split halves.
    seed : int
        Random seed.
    out, cache, engine, listener
        As in `biassay.run`.
    budget : int, optional
        Largest number of tokens that endpoints may use. The run stops before it exceeds the budget and can be resumed.

    Returns
    -------
    Run

    References
    ----------
    .. [1] Cao, Y. T., Sotnikova, A., Daumé III, H., Rudinger, R., and Zou, L. (2022). Theory-grounded measurement of
       U.S. social stereotypes in English language models. NAACL, 1276-1295.
    """
    raise NotImplementedError


@_measures("word_association")
def ask(
    models: object,
    tests: Tests = (),
    *,
    n_answers: int = DEFAULT_N_REPLIES,
    wordings: str | Sequence[str] = (),
    read: str = "auto",
    decisions: bool = False,
    alpha: float = 0.05,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Executor | None = None,
    listener: Listener | None = None,
    budget: int | None = None,
) -> Run:
    """Ask chat or instruct models which of two group words they associate with each of many words.

    Parameters
    ----------
    models : str, list of str, or dict
        Models that respond to prompts: ``chat:NAME``, ``completions:NAME``, ``hf:NAME``.
    tests : str, path, dict of words, or list of them
        As in `select_tests`, and the published data sets: ``wat-racism``, ``wat-*``, ``all``. A dict has X, Y, A and B,
        or ``default``, ``stigmatised``, ``positive`` and ``negative``. By default the published data sets that can be
        significant at `alpha`; the others, with too few pairs of group words, are descriptive.
    n_answers : int
        Number of responses per test, half of them with either order of the group words.
    wordings : str or list of str
        Wordings of the prompts. By default all.
    read : {"auto", "replies", "log-odds"}
        Read words, or the likelihoods of the two group words. By default log-odds if a model provides them for whole
        words.
    decisions : bool
        If True, also ask which of two people gets which of two tasks.
    alpha : float
        Significance level. Intervals have confidence 1 - alpha.
    seed : int
        Random seed.
    out, cache, engine, listener
        As in `biassay.run`.
    budget : int, optional
        Largest number of tokens that endpoints may use. The run stops before it exceeds the budget and can be resumed.

    Returns
    -------
    Run
        ``results`` hold how much more often negative than positive words go to the stigmatised group, and the
        published score D. p-values and intervals allow for missing responses (refusals, filtered, failed, unparsed,
        left out); ``bound_low`` and ``bound_high`` count them against and for the stereotype, and ``evidence``
        summarizes each test. The table ``replies`` counts replies by kind, the table ``missing`` counts missing
        responses by pole and prompt.

    See Also
    --------
    score_responses : Score responses collected elsewhere.

    References
    ----------
    .. [1] Bai, X., Wang, A., Sucholutsky, I., and Griffiths, T. L. (2025). Explicitly unbiased large language models
       still form biased associations. PNAS 122(8), e2416228122.
    """
    raise NotImplementedError


@_measures("prompt_robustness")
def prompt_robustness(
    models: object,
    tests: Tests = (),
    *,
    benchmark: str | None = None,
    data: PathLike | None = None,
    limit: int | None = None,
    n_answers: int = DEFAULT_N_REPLIES,
    temperatures: float | Sequence[float] = (0.0, 1.0),
    systems: str | Sequence[str] = DEFAULT_SYSTEMS,
    alpha: float = 0.05,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Executor | None = None,
    listener: Listener | None = None,
    budget: int | None = None,
) -> Run:
    """Measure models under many variants of the prompts, to see which findings depend on the prompt.

    Parameters
    ----------
    models : str, list of str, or dict
        Models that respond to prompts: ``chat:NAME``, ``completions:NAME``, ``hf:NAME``.
    tests : str, path, dict of words, or list of them
        Word association tests, as in `biassay.ask`. Give these or a benchmark.
    benchmark : str, optional
        Benchmark that asks questions, as in `biassay.benchmark`.
    data : path or str, optional
        Data of the benchmark.
    limit : int, optional
        As in `biassay.benchmark`.
    n_answers : int
        Number of responses per test and specification.
    temperatures : float or list of float
        Sampling temperatures, besides the model's own.
    systems : str or list of str
        System messages, besides the model's own.
    alpha : float
        Significance level. Intervals have confidence 1 - alpha.
    seed : int
        Random seed.
    out, cache, engine, listener
        As in `biassay.run`.
    budget : int, optional
        Largest number of tokens that endpoints may use. The run stops before it exceeds the budget and can be resumed.

    Returns
    -------
    Run
        ``results`` hold for every test or category the outcome of the default specification, how many specifications
        agree with it, and one joint p-value. The table ``specifications`` holds every specification.

    See Also
    --------
    robustness : Measure models that encode texts under many analysis choices.

    References
    ----------
    .. [1] Simonsohn, U., Simmons, J. P., and Nelson, L. D. (2020). Specification curve analysis. Nature Human
       Behaviour, 4, 1208-1214.
    """
    raise NotImplementedError


@_measures("benchmarks")
def benchmark(
    benchmark: str,
    models: object,
    *,
    data: PathLike,
    flagged: PathLike | None = None,
    categories: str | Sequence[str] = (),
    by: str | None = None,
    score: str = "shared",
    limit: int | None = None,
    orders: int = 6,
    alpha: float = 0.05,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Executor | None = None,
    listener: Listener | None = None,
    budget: int | None = None,
) -> Run:
    """Score models on a published benchmark, with intervals over its templates, writers, terms or questions.

    Parameters
    ----------
    benchmark : {"bbq", "mbbq", "kobbq", "crows-pairs", "stereoset", "winobias", "winogender", "discrim-eval"}
        Name of the benchmark, or of one that an installed package adds.
    models : str, list of str, or dict
        For CrowS-Pairs and StereoSet, models that provide likelihoods of texts: ``hf:NAME``, masked or causal, or
        ``completions:NAME``. For the others, chat or instruct models: ``chat:NAME``, ``completions:NAME``, ``hf:NAME``.
    data : path or str
        The benchmark as its authors released it: a file, a folder, or the name of an installed package that holds it.
    flagged : path, optional
        File with the ids of items of CrowS-Pairs or StereoSet to leave out.
    categories : str or list of str
        Categories of BBQ, or bias types. By default all.
    by : {"answer", "log-probability"}, optional
        How models respond to questions. By default by log-probability if the model provides that of any text, else by
        answer.
    score : {"shared", "sentence"}
        Compare the tokens that both sentences of CrowS-Pairs share, as its authors do, or whole sentences, as
        lm-evaluation-harness does.
    limit : int, optional
        Draw at most this many items per category, balanced over templates (writers, terms), kinds of questions and
        positions of answers; for WinoBias, Winogender and discrim-eval, whole templates, occupations or decision
        questions. By default all.
    orders : int
        Number of orders in which the options of a question are shown; its choice is over all of them.
    alpha : float
        Significance level. Intervals have confidence 1 - alpha.
    seed : int
        Random seed for `limit`, and for the orders if they are fewer than six.
    out, cache, engine, listener
        As in `biassay.run`.
    budget : int, optional
        Largest number of tokens that endpoints may use. The run stops before it exceeds the budget and can be resumed.

    Returns
    -------
    Run

    References
    ----------
    .. [1] Parrish, A., et al. (2022). BBQ: A hand-built bias benchmark for question answering. Findings of ACL.
    .. [2] Nangia, N., Vania, C., Bhalerao, R., and Bowman, S. R. (2020). CrowS-Pairs: A challenge dataset for measuring
       social biases in masked language models. EMNLP.
    .. [3] Nadeem, M., Bethke, A., and Reddy, S. (2021). StereoSet: Measuring stereotypical bias in pretrained language
       models. ACL.
    .. [4] Zhao, J., et al. (2018). Gender Bias in Coreference Resolution: Evaluation and Debiasing Methods. NAACL.
    .. [5] Rudinger, R., et al. (2018). Gender Bias in Coreference Resolution. NAACL.
    .. [6] Tamkin, A., et al. (2023). Evaluating and Mitigating Discrimination in Language Model Decisions.
       arXiv:2312.03689.
    """
    raise NotImplementedError


@_measures("robustness")
def robustness(
    models: object = ("use",),
    tests: Tests = (),
    *,
    representations: str | Sequence[str] = (),
    similarities: str | Sequence[str] = tuple(SIMILARITIES),
    n_subsets: int = 20,
    alpha: float = 0.05,
    max_unknown: float = 0.2,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Executor | None = None,
    listener: Listener | None = None,
) -> Run:
    """Measure association tests under many analysis choices, to see which findings depend on one of them.

    Parameters
    ----------
    models : str, object, list of them, or dict
        As in `biassay.run`.
    tests : str, path, dict of words, or list of them
        As in `biassay.run`.
    representations : str or list of str
        Layers and poolings, such as ``layer=3&pool=mean``. By default up to 8 layers, and every pooling of the model's
        own layer. One pass through the model gives all of them.
    similarities : str or list of str
        Any of ``cosine``, ``centred`` (without the mean of frequent words), ``components`` (also without their three
        principal components) and ``rank`` (Spearman's correlation). The first specification always uses cosine.
    n_subsets : int
        Number of random halves of the words.
    alpha : float
        Significance level. Intervals have confidence 1 - alpha.
    max_unknown, seed, out, cache, engine, listener
        As in `biassay.run`.

    Returns
    -------
    Run
        ``results`` hold for every test the effect size, interval and p-value of `biassay.run`, how many specifications
        agree with them, and one joint p-value (these words only). The table ``specifications`` holds every
        specification.

    References
    ----------
    .. [1] Simonsohn, U., Simmons, J. P., and Nelson, L. D. (2020). Specification curve analysis. Nature Human
       Behaviour, 4, 1208-1214.

    Examples
    --------
    >>> import biassay
    >>> found = biassay.robustness("glove", "weat6").results[0]
    >>> found.n_specifications, found.n_same_sign, found.p_value < 0.001, found.alternatives["joint"].p_value < 0.001
    (4, 4, True, True)
    """
    raise NotImplementedError


@_measures("debiasing")
def debias(
    models: object,
    concept: str = "gender",
    method: str | Sequence[str] = ("leace",),
    tests: str | Sequence[str] = (),
    *,
    documents: PathLike | None = None,
    query: str | PathLike | Sequence[str | PathLike] = (),
    names: str | PathLike | None = None,
    by: str | Sequence[str] = (),
    n_names: int | None = None,
    similarity: PathLike | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Executor | None = None,
    listener: Listener | None = None,
) -> Run:
    """Erase a concept from models, and measure what is gone, what is left and what is lost.

    Parameters
    ----------
    models : str, object, list of them, or dict
        Models that encode texts, as in `biassay.run`.
    concept : str
        Name of a concept (``gender``, ``race``, ``age``), or a TOML file of words.
    method : str or list of str
        Any of ``mean-projection``, ``hard``, ``inlp`` and ``leace``.
    tests : str or list of str
        Association tests, as in `biassay.run`. They must not contain words that the concept is fitted on. By default
        those of the concept.
    documents, query, names, by, n_names
        Documents and names of the audit, as in `biassay.audit`. By default 24 short texts and names that suit the
        concept; names that the concept is fitted on are never drawn.
    similarity : path, optional
        Table of word pairs with columns word_1, word_2 and similarity. By default 59 pairs.
    alpha : float
        Significance level.
    seed, out, cache, engine, listener
        As in `biassay.run`.

    Returns
    -------
    Run
        ``results`` hold for every method and number the change, and the values before and after
        (``before_effect_size``, ``after_effect_size``). ``arrays`` hold the fitted erasers.

    References
    ----------
    .. [1] Belrose, N., et al. (2023). LEACE: Perfect linear concept erasure in closed form. NeurIPS.
    .. [2] Gonen, H., and Goldberg, Y. (2019). Lipstick on a pig: Debiasing methods cover up systematic gender biases in
       word embeddings but do not remove them. NAACL-HLT, 609-614.

    Examples
    --------
    >>> import biassay
    >>> found = biassay.debias("glove", method="mean-projection", tests="weat6")
    >>> probe = found["mean-projection probe"].results[0]
    >>> probe.before_effect_size > probe.after_effect_size > 0.5
    True
    """
    raise NotImplementedError
