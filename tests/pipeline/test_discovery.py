"""``biassay.discover`` on made-up vectors with planted words: every number against loops in the test."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.encoders.static import frequent_words
from biassay.results.discovery import CurveRecord, Discovery, GroupFindings

from . import planted_words as made_up
from .planted_words import ALL_RATED, EACH, NAMES, RATED, TABLE, WORDS, discovered, planted, write_groups


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted(tmp_path_factory.mktemp("discovery"))


@pytest.fixture(scope="module")
def found(place: Path) -> Discovery:
    return discovered(place, ["red-women", "blue-men"])


def test_every_score_is_that_of_a_loop(found: Discovery) -> None:
    for findings in found.results:
        assert sorted(w.word for w in findings.words) == sorted(WORDS)
        for word in findings.words:
            scores = [
                made_up.score(word.word, NAMES[findings.group], other) for other in made_up.others_of(findings.group)
            ]
            parts = [made_up.score(word.word, *sides) for sides in made_up.constituents_of(findings.group)]
            assert word.scores == pytest.approx(scores, abs=1e-9)
            assert word.constituents == pytest.approx(parts, abs=1e-9)
            assert word.score == max(word.scores)
        ranked = [word.score or 0.0 for word in findings.words]
        assert ranked == sorted(ranked, reverse=True)
    assert found.of("red-women").others == found.of("red-women").other_groups == ("red-men", "blue-women", "blue-men")
    assert found.of("red-women").constituents == ("colour: red / blue", "gender: women / men")


def test_planted_words_are_found_and_random_ones_are_not(place: Path) -> None:
    findings = discovered(place, threshold=1.3).of("red-women")
    associated = {w.word for w in findings.words if w.associated}
    assert associated >= {f"{kind}{i}" for kind in ("blossom", "red") for i in range(EACH)}
    assert not [word for word in associated if word.startswith(("random", "hammer"))]
    eibd, emergent = ({w.word for w in findings.words if getattr(w, name)} for name in ("eibd", "emergent"))
    assert emergent >= {f"blossom{i}" for i in range(EACH)}
    assert not [word for word in eibd if word.startswith("red")]
    excess = {w.word for w in findings.words if (w.q_value_excess or 0.0) <= 0.05}
    assert excess >= {f"blossom{i}" for i in range(EACH)}
    assert not [word for word in excess if word.startswith("red")]
    assert findings.num_associated == len(associated)
    assert emergent == eibd & excess
    assert (findings.num_eibd, findings.num_emergent) == (len(eibd), len(emergent))


def test_in_an_older_folder_emergent_was_what_eibd_detects(found: Discovery, tmp_path: Path) -> None:
    path = found.save(tmp_path / "run") / "results.json"
    content = json.loads(path.read_text())
    del content["digest"]
    for findings in content["results"]:
        findings |= {"num_excess": findings["num_emergent"], "num_emergent": findings.pop("num_eibd")}
        for word in findings["words"]:
            word["emergent"] = word.pop("eibd")
    path.write_text(json.dumps(content))
    assert sum(findings.num_emergent for findings in found.results) < sum(f["num_emergent"] for f in content["results"])
    assert Discovery.load(tmp_path / "run") == found


def test_names_are_not_among_the_words(found: Discovery, place: Path) -> None:
    names = set(itertools.chain(*NAMES.values()))
    assert found.results[0].num_words == len(WORDS) == len(TABLE) - len(names)
    assert not names & {w.word for f in found.results for w in f.words}
    few = discovered(place, words=["redwomen0", "blossom0", "bluemen7", "random0"])
    assert {w.word for w in few.results[0].words} == {"blossom0", "random0"}
    assert few.manifest.words_lost == ()


def test_q_values_are_benjamini_and_hochbergs(found: Discovery) -> None:
    for findings in found.results:
        for one, other in (("p_value", "q_value"), ("p_value_excess", "q_value_excess")):
            p = [getattr(word, one) for word in findings.words]
            assert all(1 / 500 <= value <= 1.0 for value in p)
            for word in findings.words:
                larger = [value for value in p if value >= getattr(word, one)]
                q = min(1.0, *(value * len(p) / sum(x <= value for x in p) for value in larger))
                assert getattr(word, other) == pytest.approx(q, rel=1e-12)
        assert min(word.p_value for word in findings.words) == 1 / 500


def test_a_seed_gives_the_same_findings_and_another_other_p_values(found: Discovery, place: Path) -> None:
    again, other = (discovered(place, ["red-women", "blue-men"], seed=seed) for seed in (0, 1))
    assert again.results == found.results
    for one, two in zip(found.results, other.results, strict=True):
        assert [(w.word, w.scores, w.constituents) for w in one.words] == [
            (w.word, w.scores, w.constituents) for w in two.words
        ]
        assert [w.p_value for w in one.words] != [w.p_value for w in two.words]


def test_a_file_a_list_of_words_and_an_object_find_the_same(found: Discovery, place: Path) -> None:
    both = ["red-women", "blue-men"]
    (place / "words.txt").write_text("\n".join([*TABLE, "", "random0", "  blossom0 "]), encoding="utf-8-sig")
    listed = discovered(place, both, words=list(TABLE))
    lines = discovered(place, both, words=place / "words.txt")
    held = biassay.discover(
        made_up.Held(), both, groups=place / "own.toml", permutations=499, words=list(TABLE), cache=place / "cache"
    )
    for other in (listed, lines, held):
        assert other.results == found.results
    sources = [d.manifest.vocabulary for d in (found, listed, lines, held)]
    assert sources == ["the words of the model", "a list of words", str(place / "words.txt"), "a list of words"]
    assert held.manifest.models[0].revision is None


def test_words_come_from_any_iterable_and_are_known_by_a_fingerprint(place: Path) -> None:
    made = discovered(place, words=(word for word in ["random5", "", "blossom0", "random5"]))
    assert {w.word for w in made.results[0].words} == {"random5", "blossom0"}
    same, other = (discovered(place, words=words) for words in (["random5", "blossom0"], ["blossom0", "random6"]))
    assert made.manifest.vocabulary_digest == same.manifest.vocabulary_digest is not None
    assert other.manifest.vocabulary_digest != same.manifest.vocabulary_digest


def test_words_that_differ_in_case_are_one_where_the_model_sees_no_difference(place: Path) -> None:
    words = ["Blossom0", "random5", "blossom0", "BLOSSOM0", "Random6"]
    given = {"groups": place / "own.toml", "permutations": 99, "words": words}
    kept, folded = (
        biassay.discover(f"vectors:{place / 'v.txt'}{case}", "red-men", **given) for case in ("", "?case=fold")
    )
    assert {w.word for w in kept.results[0].words} == {"blossom0", "random5"}
    assert kept.manifest.words_lost == ("Blossom0", "BLOSSOM0", "Random6")
    assert {w.word for w in folded.results[0].words} == {"Blossom0", "random5", "Random6"}
    assert folded.manifest.words_lost == ()


@pytest.mark.slow
def test_an_object_without_a_list_is_asked_for_frequent_words(place: Path) -> None:
    made = biassay.discover(made_up.Random(), "red-men", groups=place / "own.toml", permutations=9, keep=3)
    assert made.manifest.vocabulary == "the most frequent words of the embedded vectors"
    assert made.results[0].num_words == 20_000
    assert len(made.results[0].words) <= 6


@pytest.mark.slow
@pytest.mark.parametrize("words", [WORDS, None])
def test_the_record_counts_the_distinct_texts_and_those_encoded(words: list[str] | None, place: Path) -> None:
    groups, names = place / "own.toml", {name for names in NAMES.values() for name in names}
    made = biassay.discover(made_up.Random(), "red-men", groups=groups, words=words, permutations=9)
    asked = {*ALL_RATED, *names, *(frequent_words() if words is None else words)}
    record = made.manifest.models[0]
    assert (record.texts, record.encoded) == (len(asked), len(asked))


def test_nothing_is_encoded_twice(place: Path, tmp_path: Path) -> None:
    first, second = (discovered(place, words=WORDS, cache=tmp_path / "cache").manifest.models[0] for _ in range(2))
    assert first.encoded == len({*ALL_RATED, *WORDS}) + sum(map(len, NAMES.values()))
    assert second.encoded == 0


@pytest.mark.parametrize(("keep", "compare"), [(1, "any"), (2, "any"), (20, "any"), (2, "every")])
def test_fewer_kept_words_are_the_best_of_each_list(keep: int, compare: Any, place: Path) -> None:
    (all_words,), (few,) = (discovered(place, threshold=1.0, keep=k, compare=compare).results for k in (1000, keep))
    passing = [w for w in all_words.words if (w.score or 0.0) > 1.0 >= max(w.constituents)]
    passing.sort(key=lambda w: w.p_value_excess)  # so that a list of emergent words is whole while it is short
    best = [w for i, w in enumerate(all_words.words) if i < keep or w in passing[:keep]]
    assert list(few.words) == best
    assert 0 < len(best) < len(all_words.words)
    for count in ("num_words", "num_above", "num_associated", "num_every", "num_eibd", "num_emergent"):
        assert getattr(few, count) == getattr(all_words, count)


def detected(findings: GroupFindings, threshold: float, rule: str | None, compare: str = "any") -> set[str]:
    """The rated words that are detected at a threshold: by IBD, or with a rule by EIBD."""
    enough = any if compare == "any" else all
    told = set()
    for word in findings.validated:
        dropped = [part > threshold for part in word.constituents]
        drops = rule is not None and (any(dropped) if rule == "any" else all(dropped))
        if enough(s > threshold for s in word.scores) and not drops:
            told.add(word.word)
    return told


@pytest.mark.parametrize(
    ("rule", "positive", "compare"),
    [
        ("any", True, "any"),
        ("all", True, "any"),
        ("any", False, "any"),
        ("any", True, "every"),
        ("all", False, "every"),
    ],
)
def test_thresholds_are_those_that_fit_the_rated_words_best(
    rule: Any, positive: bool, compare: Any, place: Path
) -> None:
    groups = ["red-women", "blue-men", "red-men"]
    made = discovered(place, groups, rule=rule, positive_only=positive, compare=compare)
    grid = [step / 100 for step in range(-200, 200, 5) if step > 0 or not positive]
    for findings in made.results:
        assert {w.word for w in findings.validated} == ALL_RATED
        lists = RATED[findings.group]
        for kind, own, curve, chosen, source in (
            (None, lists["biases"], findings.curve, findings.threshold, findings.threshold_source),
            (rule, lists.get("emergent", []), findings.curve_emergent, *_emergent(findings)),
        ):
            if not own:
                assert (curve, chosen, source) == (None, 0.8, "convention")
                continue
            gains = []
            for t in grid:
                tp = len(detected(findings, t, kind, compare) & set(own))
                fp = len(detected(findings, t, kind, compare)) - tp
                gains.append((tp * (len(ALL_RATED) - len(own)) - fp * len(own), tp, t))
            best = max(gains)[2]
            assert (chosen, source) == (best, "validation")
            check_curve(curve, detected(findings, best, kind, compare), set(own), best)
        by_ibd, by_eibd = (
            {w.word for w in findings.validated if w.detected},
            {w.word for w in findings.validated if w.detected_emergent},
        )
        assert by_ibd == detected(findings, findings.threshold, None, compare)
        assert by_eibd == detected(findings, findings.threshold_emergent, rule, compare)


def check_curve(curve: CurveRecord | None, told: set[str], own: set[str], at: float) -> None:
    """The shares of a curve are those of the words told at a threshold, of which ``own`` are true."""
    tp, fp, others = len(told & own), len(told - own), len(ALL_RATED - own)
    assert curve is not None
    assert curve.chosen == at
    place = curve.thresholds.index(at)
    counts = [getattr(curve, name)[place] for name in ("tp", "fp", "fn", "tn")]
    assert counts == [tp, fp, len(own) - tp, others - fp]
    assert curve.recall == pytest.approx(tp / len(own))
    assert curve.false_positive_rate == pytest.approx(fp / others)
    assert curve.accuracy == pytest.approx((tp + others - fp) / len(ALL_RATED))
    assert curve.precision == (pytest.approx(tp / (tp + fp)) if tp + fp else None)
    assert curve.chance == pytest.approx(len(own) / len(ALL_RATED))


@pytest.mark.parametrize("threshold", [0.3, 1.234, 1.99, -0.5])
def test_with_a_threshold_given_the_rates_are_those_at_it(threshold: float, place: Path) -> None:
    made = discovered(place, ["red-women", "red-men"], threshold=threshold)
    assert made.manifest.threshold == threshold
    for findings in made.results:
        assert (findings.threshold, findings.threshold_source) == (threshold, "given")
        assert _emergent(findings) == (threshold, "given")
        own = set(RATED[findings.group]["biases"])
        check_curve(findings.curve, detected(findings, threshold, None), own, threshold)
        assert findings.curve is not None
        assert list(findings.curve.thresholds) == sorted({*(step / 100 for step in range(-200, 200, 5)), threshold})
    first = made.of("red-women")
    own = set(RATED["red-women"]["emergent"])
    check_curve(first.curve_emergent, detected(first, threshold, "any"), own, threshold)


def test_where_no_true_word_is_detected_the_threshold_is_the_one_by_convention(place: Path, tmp_path: Path) -> None:
    """Rated for the group are words that lean away from it: the best is to detect none."""
    rated = {"red-women": {"biases": ["hammer0", "hammer1"]}, "blue-men": {"biases": ["blossom0", "random4"]}}
    groups = write_groups(tmp_path / "away.toml", rated)
    (findings,) = discovered(place, groups=groups, compare="every").results
    assert (findings.threshold, findings.threshold_source) == (0.8, "convention")
    curve = findings.curve
    assert curve is not None
    assert (curve.chosen, curve.recall, curve.false_positive_rate) == (0.8, 0.0, 0.5)
    assert {w.word for w in findings.validated if w.detected} == {"blossom0"}
    other = discovered(place, groups=groups, compare="every", positive_only=False).results[0]
    assert other.threshold_source == "validation"
    assert other.threshold < 0


def _emergent(findings: GroupFindings) -> tuple[float, str]:
    return findings.threshold_emergent, findings.threshold_emergent_source


@pytest.mark.parametrize("compare", ["any", "every"])
@pytest.mark.parametrize("rule", ["any", "all"])
@pytest.mark.parametrize("threshold", [0.4, 1.0, None])
def test_words_marked_are_those_above_the_threshold_by_more_than_chance(
    compare: Any, rule: Any, threshold: float | None, place: Path, tmp_path: Path
) -> None:
    unrated = write_groups(tmp_path / "unrated.toml", {})
    given = {"rule": rule, "compare": compare, "threshold": threshold, "alpha": 0.1}
    (findings,) = discovered(place, groups=unrated, **given).results
    t = 0.8 if threshold is None else threshold
    assert findings.curve is findings.curve_emergent is None
    assert findings.validated == ()
    assert findings.threshold == findings.threshold_emergent == t
    assert findings.threshold_source == ("convention" if threshold is None else "given")
    combined, decides = any if rule == "any" else all, max if compare == "any" else min
    for word in findings.words:
        assert word.score == decides(word.scores)
        associated = decides(word.scores) > t and word.q_value <= 0.1
        assert word.associated is associated
        assert word.eibd is (associated and not combined(part > t for part in word.constituents))
        assert word.emergent is (word.eibd and word.q_value_excess <= 0.1)
    assert findings.num_eibd == sum(word.eibd for word in findings.words)
    assert findings.num_emergent == sum(word.emergent for word in findings.words)
    assert findings.num_eibd > 0 or compare == "every"
    assert findings.num_associated == sum(word.associated for word in findings.words) > 0
    assert findings.num_above == sum(decides(word.scores) > t for word in findings.words) >= findings.num_associated
    assert findings.num_every == sum(word.associated and min(word.scores) > t for word in findings.words)
    assert (findings.num_every == findings.num_associated) is (compare == "every")


def test_against_every_group_only_words_of_this_group_are_found(place: Path) -> None:
    """Words of a colour lean to both groups of that colour: the largest score is high, and the smallest is not."""
    one, every = (discovered(place, threshold=0.5, compare=compare) for compare in ("any", "every"))
    assert (one.manifest.compare, every.manifest.compare) == ("any", "every")
    blossoms = {f"blossom{i}" for i in range(EACH)}
    assert {w.word for w in one.results[0].words if w.associated} >= blossoms | {f"red{i}" for i in range(EACH)}
    assert {w.word for w in every.results[0].words if w.associated} == blossoms
    ranked = [word.score for word in every.results[0].words]
    assert ranked == sorted(ranked, reverse=True)
    excess = [{w.word: w.p_value_excess for w in made.results[0].words} for made in (one, every)]
    assert excess[0] == excess[1]
    alone, among = (discovered(place, groups, compare="every") for groups in ("red-women", ["blue-men", "red-women"]))
    assert alone.of("red-women") == among.of("red-women")


def test_against_every_group_p_is_the_largest_of_all_ways_to_deal_two_groups(place: Path) -> None:
    (findings,) = discovered(place, compare="every", permutations=4999).results
    unit = {word: vector / np.linalg.norm(vector) for word, vector in TABLE.items()}
    chosen = np.array([np.isin(np.arange(16), part) for part in itertools.combinations(range(16), 8)])
    for word in findings.words:
        exact = []
        for other in made_up.others_of("red-women"):
            cosines = np.array([unit[word.word] @ unit[name] for name in (*NAMES["red-women"], *other)], dtype=float)
            exact.append(np.mean(chosen @ cosines >= cosines[:8].sum() - 1e-6))
        # Either all deals were made, or as many as were needed for fifty that do as well.
        error = 5 * max(np.sqrt(max(exact) / 4999), max(exact) / np.sqrt(50)) + 1 / 5000
        assert word.p_value == pytest.approx(max(exact), abs=error)
