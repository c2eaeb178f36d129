"""Groups, traits and templates of one's own, tiny language models that know their words, and made-up judgements."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

import biassay
from biassay.datasets.abc_model import AbcStimuli, list_paired_groups, load_abc
from biassay.results.run_data import RunSlice, split_by_model
from biassay.runs.run import Run
from biassay.studies.stereotypes.results import split_by_measure

SHIPPED = ["gender", "race", "religion", "socioeconomic", "age", "disability", "politics", "nationality"]
GROUPS = ("north", "south", "east", "smith", "miller", "baker")
TEMPLATES = ("own-that", "own-many", "own-first", "own-so")
# Shipped domains are paired with nothing, so that pairs are few: of land and craft, a smith evidence last only.
OWN = f"""
[domains]
land = "Land"
craft = "Craft"

[dimensions]
wit = "Wit"

[pairs.dull-witty]
dimension = "wit"
left = "dull"
right = "witty"
right_adjectives = ["witty", "quick"]

[groups]
north = {{ domain = "land", adjective = "northern", human = ["northerners"], pilot = true }}
south = {{ domain = "land", adjective = "southern", human = ["southerners"] }}
east = {{ domain = "land", adjective = "eastern", human = ["easterners"] }}
smith = {{ domain = "craft", singular = "smith", plural = "smiths", human = ["smiths"] }}
miller = {{ domain = "craft", singular = "miller", plural = "millers", modifier = "milling" }}

[groups.baker]
domain = "craft"
singular = "baker"
plural = "bakers"
modifier = "baking"
human = ["bakers"]
pilot = true

[templates]
own-that = {{ kind = "mine", number = "singular", text = "That is {{a group}} and is {{trait}}." }}
own-many = {{ kind = "mine", number = "plural", text = "There {{group}} are {{trait}}." }}
own-first = {{ kind = "mine", number = "plural", text = "The {{trait}} are {{group}}." }}
own-so = {{ kind = "mine", number = "plural", text = "I know {{group}}, so {{trait}}!" }}

[[exclude]]
groups = {json.dumps(SHIPPED)}
with = {json.dumps([*SHIPPED, "land", "craft"])}
reason = "to have few pairs"
"""
PIECES = {"powerless": ("power", "##less"), "powerful": ("power", "##ful"), "unassertive": ("un", "##assertive")}
HUMAN_NAMES = ("northerners", "southerners", "easterners", "bakers", "smiths")


def own_file(folder: Path, more: str = "") -> Path:
    path = folder / "own.toml"
    path.write_text(OWN + more, encoding="utf-8")
    return path


def words_of(abc: AbcStimuli) -> list[str]:
    """All words of all sentences, as the tokenizer below cuts them; some adjectives in pieces."""
    texts = [template.text for template in abc.templates] + [abc.prior_singular, abc.prior_plural, "a an"]
    texts += [form for group in (*abc.groups, *list_paired_groups(abc)) for form in (group.singular, group.plural)]
    texts += [word for pair in abc.pairs for word in (*pair.left_adjectives, *pair.right_adjectives)]
    words = dict.fromkeys(word for text in texts for word in re.findall(r"\w+|[^\w\s{}]", text.lower()))
    pieces = dict.fromkeys(piece for cut in PIECES.values() for piece in cut)
    return [*(word for word in words if word not in PIECES and word not in pieces), *pieces]


def save_masked(
    folder: Path, abc: AbcStimuli, *, without: tuple[str, ...] = (), head: bool = True, seed: int = 5
) -> Path:
    """A random BERT whose vocabulary is the words of all sentences."""
    import torch
    import transformers as library
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [word for word in words_of(abc) if word not in without]
    vocabulary = {word: i for i, word in enumerate([*special, *words])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    names = {f"{name.strip('[]').lower()}_token": name for name in special}
    library.PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=32, **names).save_pretrained(folder)
    torch.manual_seed(seed)
    size: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
    }
    config = library.BertConfig(vocab_size=len(vocabulary), pad_token_id=0, max_position_embeddings=32, **size)
    model: Any = (library.BertForMaskedLM if head else library.BertModel)(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    model.save_pretrained(folder)
    return folder


def judgements(folder: Path, *, annotators: int = 9, means: bool = False, name: str = "human.json") -> Path:
    """Made-up ratings of five of the groups, and of one that nobody asks about, on all pairs but one."""
    rng = np.random.default_rng(11)
    pairs = [f"{pair.left} - {pair.right}" for pair in load_abc().pairs] + ["dull - witty"]

    def of_groups() -> dict[str, dict[str, int]]:
        return {
            group: dict(zip(pairs[1:], rng.integers(0, 101, len(pairs) - 1).tolist(), strict=True))
            for group in (*HUMAN_NAMES, "average people")
        }

    content: dict[str, Any] = of_groups()
    if not means:
        kinds = ("Woman", "Man")
        content = {
            f"annotator{i}": {**of_groups(), "demographics": {"Gender": kinds[i % 2]}} for i in range(annotators)
        }
    path = folder / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


class Place:
    """A model, a file of groups, and judgements of them; called, it asks the model about these groups."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, [own_file(folder)]
        self.abc: AbcStimuli = load_abc(self.files)
        self.model = f"hf:{save_masked(folder / 'model', self.abc)}"
        self.human = judgements(folder)

    def __call__(self, model: str | list[str] | None = None, **given: Any) -> Run:
        asked: dict[str, Any] = {
            "files": self.files,
            "groups": ["land", "craft"],
            "templates": ["mine"],
            "n_bootstrap": 30,
        } | given
        return biassay.stereotypes(model or self.model, **asked)


def numbers(row: Any) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in row])


def measures(run: Run) -> list[RunSlice]:
    """Of a run of one model."""
    (model,) = split_by_model(run)
    return split_by_measure(model)


def profiles(measure: RunSlice) -> dict[str, np.ndarray]:
    return {profile.group: numbers(profile.scores) for profile in measure["profiles"]}
