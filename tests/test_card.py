"""The card tells the truth about a model, and its pages show hostile text as text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from service.auditing import show_tree
from service.card import make_card
from service.card_pages import write_html, write_markdown
from service.importance import weigh_gains
from service.pruning import PruningRequest, prune_model
from service.store.records import ModelRecord
from tests.making import Trainer

ROWS = 120
TAGS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "ul", "li", "table", "thead", "tbody", "tr",
    "th", "td",
}  # fmt: skip
HOSTILE = [
    "<script>alert(1)</script>",
    "</td></tr></table><img src=x onerror=alert(1)>",
    "\" onmouseover='alert(1)' x=\"",
    "&lt;b&gt; &amp; <b>bold</b>",
    "| a | b |",
    "[x](javascript:alert(1)) ![y](http://evil.example/p.png)",
    "`code` **bold** # heading <http://evil.example> http://evil.example www.evil.example me@evil.example",
    "1. first\n\n# second\n- third",
    "{{ 7 * 7 }} {% raw %} ${7}",
    "\u202eelif\u2028line",
]


@pytest.fixture
def record(trainer: Trainer) -> ModelRecord:
    """A model of numbers and labels with gaps, cross-validated."""
    return train(trainer, cross_validation=4, description="Who pays.", tags={"team": "risk"}, name="credit")


def train(trainer: Trainer, **more: Any) -> ModelRecord:  # noqa: ANN401 - fields of a request
    """A model of three features."""
    random = np.random.default_rng(3)
    age, job = random.integers(18, 80, ROWS), random.choice(["clerk", "cook", "driver"], ROWS)
    debt = np.round(random.normal(2, 1, ROWS), 3)
    pays = (age > 40) ^ (job == "cook") ^ (random.random(ROWS) < 0.15)
    columns: dict[str, list[Any]] = {"age": age.tolist(), "job": job.tolist(), "debt": debt.tolist()}
    columns["debt"][5] = None
    target = {"y": np.where(pays, "good", "bad").tolist()}
    if more.get("task") == "regression":
        target = {"y": (age / 10 + debt).tolist()}
    return trainer(columns | target, parameters={"max_depth": 5, "min_samples_leaf": 2}, **more)


def test_what_a_card_tells(trainer: Trainer, record: ModelRecord) -> None:
    """The figures are those of the record, of the tree, of the importance and of the log."""
    card = make_card(record, trainer.store)
    body = record.body
    assert (card["name"], card["version"], card["description"]) == ("credit", 1, "Who pays.")
    assert card["changed_parameters"] == {"max_depth": 5, "min_samples_leaf": 2}
    assert card["metrics"]["training"] == {"accuracy": body["metrics"]["accuracy"]}
    told = card["metrics"]["cross_validation"]["metrics"]["accuracy"]
    assert told["mean"] == body["metrics"]["cross_validation"]["metrics"]["accuracy"]["mean"]
    gains = {each["feature"]: each["share"] for each in weigh_gains(record, trainer.store)["features"]}
    assert {each["feature"]: each["importance"] for each in card["features"]} == gains
    features = {each["feature"]: each for each in card["features"]}
    assert features["job"]["categories"] == ["clerk", "cook", "driver"]
    assert 18 <= features["age"]["range"][0] < features["age"]["range"][1] < 80
    assert sum(each["share"] for each in card["target"]["classes"]) == pytest.approx(1)
    made = trainer.store.log.find_made(record.id)
    assert made is not None
    assert card["provenance"]["log"]["sha256"] == made.sha256
    assert card["provenance"]["data_sha256"] == body["training"]["data_sha256"]
    assert card["provenance"]["versions"] == body["provenance"]["versions"]


def test_the_splits_that_matter(trainer: Trainer, record: ModelRecord) -> None:
    """The ten splits of greatest gain, by the tree's own nodes; the root is reached by all rows."""
    nodes = show_tree(record, trainer.store)["nodes"]
    by_gain = sorted((each["n"] * each["score"], -each["node"]) for each in nodes if not each["leaf"])[::-1]
    splits = make_card(record, trainer.store)["splits"]
    assert [each["node"] for each in splits] == [-node for _, node in by_gain[:10]]
    for each in splits:
        assert each["split"] == nodes[each["node"]]["split"]
        assert each["n"] == nodes[each["node"]]["n"]
        above, features = nodes[each["node"]]["parent"], set()
        while above is not None:
            above, feature = nodes[above]["parent"], nodes[above]["feature"]
            features.add(feature)
        assert each["where"].count(" and ") + 1 == max(len(features), 1)
    assert next(each for each in splits if each["node"] == 0)["where"] == "all rows"


def test_the_way_in_words(trainer: Trainer) -> None:
    """The words for the way to a node name the sides that its rows went."""
    columns = {"x": [1, 2, 3, 4] * 10, "c": [*"aabb"] * 10, "y": [*"nynn"] * 10}
    record = trainer(columns, parameters={"max_depth": 2})
    told = {each["node"]: (each["where"], each["test"]) for each in make_card(record, trainer.store)["splits"]}
    assert told == {0: ("all rows", "x <= 2.5"), 1: ("x <= 2.5", "x <= 1.5")}


def test_who_goes_that_way(trainer: Trainer) -> None:
    """The words for the way to a node hold of as many training rows as came there, and of no others."""
    random = np.random.default_rng(8)
    columns = {
        "x": random.normal(size=300).tolist(),
        "n": random.integers(0, 9, 300).tolist(),
        "c": random.choice([*"abcde"], 300).tolist(),
    }
    y = [x + n / 4 + (c in "ad") > 1.4 for x, n, c in zip(*columns.values(), strict=True)]
    record = trainer({**columns, "y": y}, parameters={"max_depth": 6})
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    splits = make_card(record, trainer.store)["splits"]
    assert len(splits) == 10
    for each in splits:
        test = re.sub(r"is one of ((?:\"\w\"(?:, )?)+)", r"in (\1)", each["where"]).replace(" is ", " == ")
        came = [row for row in rows if test == "all rows" or eval(test, {}, row)]  # noqa: S307 - our own words
        assert len(came) == each["n"], each["where"]


def test_limits(trainer: Trainer, record: ModelRecord) -> None:
    """A model that was not validated, or kept nothing, or has small leaves, says so."""
    told = " ".join(make_card(record, trainer.store)["limits"])
    assert "not measured" not in told
    assert "can be listed" in told
    other = " ".join(make_card(train(trainer, retain="none", task="regression"), trainer.store)["limits"])
    assert "not measured" in other
    assert "Nothing is kept" in other
    assert "does not extrapolate" in other


def test_every_kind_of_model_has_a_card(trainer: Trainer) -> None:
    """Regression, dissimilarity, several targets, a leaf, other presets, a pruned version: all have all three forms."""
    line = {"x": [1, 2, 3, 4, 5, 6], "c": [*"aabbcc"], "y": [1.5, 1.0, 4.0, 4.5, 9.0, 9.5], "z": [1, 1, 2, 2, 3, 4]}
    grown = train(trainer, name="pruned")
    records = [
        trainer(line, features=("x", "c")),
        trainer(line, target=("y", "z"), features=("x",)),
        trainer(line, features=("x", "c"), parameters={"criterion": "dissimilarity"}),
        trainer(line, features=("x",), parameters={"criterion": "poisson"}),
        trainer(line, target="c", features=("x",), parameters={"max_depth": 0}),
        trainer(line, target="c", features=("x",), algorithm="rpart"),
        trainer(line, target="c", features=("x", "z"), algorithm="j48"),
        trainer(line, target="c", features=()),
        prune_model(grown, PruningRequest(leaves=3), trainer.store),
    ]
    for record in records:
        card = make_card(record, trainer.store)
        assert write_html(card).startswith("<!doctype html>")
        assert write_markdown(card).startswith("# ")
    assert make_card(records[-4], trainer.store)["changed_parameters"] == {}
    assert make_card(records[-3], trainer.store)["changed_parameters"] == {}
    assert grown.id in write_html(make_card(records[-1], trainer.store))


class Reader(HTMLParser):
    """Gathers what a browser would see."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self.stack: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag and its attributes."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "meta":
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Tags are closed in order."""
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.text.append(data)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text(trainer: Trainer, hostile: str) -> None:
    """What callers wrote (names, categories, classes, tags, a description) is text on the page, and nothing else."""
    feature, label = hostile, f"{hostile} 2"
    columns = {feature: [hostile, label, "c", "d"] * 5, "y": [label, "n", "n", hostile] * 5}
    record = trainer(columns, description=hostile, tags={hostile: hostile}, weight=None)
    card = make_card(record, trainer.store)
    page, reader = write_html(card), Reader()
    reader.feed(page)
    reader.close()
    assert reader.stack == []
    assert reader.tags <= TAGS
    assert reader.attributes <= {"lang", "charset", "name", "content"}
    assert sum(hostile in text for text in reader.text) >= 6
    assert not re.search(r"(?i)(src|href|url\()\s*=?", re.sub(r">[^<]*<", "><", page))
    for line in write_markdown(card).splitlines():
        bare = re.sub(r"\\[\\`*_{}\[\]<>#+|~&$^:=@.-]", "", line)
        assert not re.search(r"[<>`*\[\]@$&]|https?:|www\.", bare), line
        assert bare.count("|") in (0, 3, 5)
        assert not re.match(r"\d+\. ", bare)


def test_a_page_needs_nothing_else(trainer: Trainer, record: ModelRecord) -> None:
    """No script, no link, no picture, nothing of another host."""
    page = write_html(make_card(record, trainer.store))
    assert not re.search(r"<(script|link|img|iframe|a|form|object)\b|https?://|@import|url\(", page)
