"""A model card as a page: Markdown or HTML, each with its own escaping, out of the same few blocks."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~&$^@]|==|:(?=//)|(?<=www)\.)", re.IGNORECASE)
"""What Markdown, or an extension of it, could take for its own: markup, entities, formulas, links that it finds."""
_OPENING = re.compile(r"^([#+=-]|\d{1,9}(?=[.)](?:\s|$)))")
"""What makes a heading or a list of a line that begins so."""
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}"
    "table{border-collapse:collapse;margin:.5rem 0 1.5rem;display:block;overflow-x:auto}"
    "th,td{border:1px solid #d0d7de;padding:.3rem .6rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}"
    "th{background:#f6f8fa}h1,h2{line-height:1.2}p{white-space:pre-line}"
)


@dataclass(frozen=True)
class Section:
    """A heading, and below it paragraphs, points and a table, each perhaps empty."""

    title: str
    paragraphs: Sequence[str] = ()
    points: Sequence[str] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def write_markdown(card: Mapping[str, Any]) -> str:
    """The card in Markdown, with tables as GitHub has them; whatever callers wrote is text there."""
    lines = [f"# {_mark(_name(card))}", ""]
    for section in lay_out(card):
        lines += [f"## {_mark(section.title)}", ""]
        for paragraph in section.paragraphs:
            lines += [_mark(paragraph), ""]
        lines += [f"- {_mark(point)}" for point in section.points]
        lines += [""] if section.points else []
        if section.rows:
            lines += [_mark_row(section.header), "|" + " --- |" * len(section.header)]
            lines += [*map(_mark_row, section.rows), ""]
    return "\n".join(lines)


def write_html(card: Mapping[str, Any]) -> str:
    """The card as a page that needs nothing else."""
    parts = [f"<h1>{_escape(_name(card))}</h1>"]
    for section in lay_out(card):
        parts.append(f"<h2>{_escape(section.title)}</h2>")
        parts += [f"<p>{_escape(paragraph)}</p>" for paragraph in section.paragraphs]
        if section.points:
            parts.append("<ul>" + "".join(f"<li>{_escape(point)}</li>" for point in section.points) + "</ul>")
        if section.rows:
            head = "".join(f"<th>{_escape(cell)}</th>" for cell in section.header)
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>")
            parts += ["<tr>" + "".join(f"<td>{_escape(cell)}</td>" for cell in row) + "</tr>" for row in section.rows]
            parts.append("</tbody></table>")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_escape(_name(card))}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def lay_out(card: Mapping[str, Any]) -> list[Section]:
    """What a page of the card has, from top to bottom."""
    told = [Section("About", paragraphs=[card["description"]])] if card["description"].strip() else []
    return [
        *told,
        Section("Model", header=("", ""), rows=_list_facts(card)),
        _lay_out_metrics(card["metrics"]),
        Section("Limits", points=[*card["limits"], *card["warnings"]]),
        Section(
            "Splits that matter most",
            paragraphs=[] if card["splits"] else ["The tree is a single leaf."],
            header=("where", "test", "rows", "share of all gains"),
            rows=[(each["where"], each["test"], write(each["n"]), _percent(each["share"])) for each in card["splits"]],
        ),
        Section(
            "Inputs",
            header=("feature", "kind", "importance", "seen in training"),
            rows=[
                (each["feature"], each["kind"], _percent(each["importance"]), _tell_seen(each))
                for each in card["features"]
            ],
        ),
        Section("Provenance", header=("", ""), rows=_list_provenance(card)),
    ]


def _list_facts(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    target, training, tree = card["target"], card["training"], card["tree"]
    facts = [("task", card["task"]), ("target", target["name"])]
    if "classes" in target:
        shares = (f"{write(each['class'])} ({_percent(each['share'])})" for each in target["classes"])
        facts.append(("classes", ", ".join(shares)))
    if "mean" in target:
        facts.append(("mean of the target", write(target["mean"])))
    facts += [
        ("training data", f"{training['rows']} rows, {training['columns']} features"),
        ("weights", training["weight"] or "none"),
        ("rows without a target", {"drop": "left out"}.get(training["missing_target"], "none")),
        ("algorithm", card["algorithm"]),
        ("parameters unlike the preset's", _join(card["changed_parameters"])),
        ("tree", f"{tree['nodes']} nodes, {tree['leaves']} leaves, depth {tree['depth']}"),
    ]
    if card["pruning"] is not None:
        facts.append(("pruning", str(card["pruning"]["method"])))
    return [*facts, ("tags", _join(card["tags"]))]


def _lay_out_metrics(metrics: Mapping[str, Any]) -> Section:
    held_out = metrics["cross_validation"]
    if held_out is None:
        plain = [(name, write(value)) for name, value in metrics["training"].items()]
        return Section("Metrics", header=("metric", "training rows"), rows=plain)
    tried = f"held out, {held_out['folds']} folds" + (f" x {held_out['repeats']}" if held_out["repeats"] > 1 else "")
    rows = [
        (name, write(metrics["training"].get(name)), write(found["mean"]), write(found["standard_deviation"]))
        for name, found in held_out["metrics"].items()
    ]
    return Section("Metrics", header=("metric", "training rows", tried, "standard deviation"), rows=rows)


def _list_provenance(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    origin = card["provenance"]
    versions = origin.get("versions") or {}
    log, parent = origin["log"], (card["pruning"] or {}).get("parent")
    facts = [
        ("made", card["created"].isoformat(timespec="seconds")),
        ("asked for by", origin.get("asked_by") or "(no key)"),
        ("made by", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("rule of ties", write(origin.get("tie_rule"))),
        ("data, SHA-256", write(origin["data_sha256"])),
        ("tree, SHA-256", origin["tree_sha256"]),
        ("kept for the audit", origin["retention"]),
        ("audit log", "" if log is None else f"entry {log['number']}, {log['sha256']}"),
    ]
    return facts + ([("pruned from", write(parent["id"]))] if parent else [])


def _tell_seen(feature: Mapping[str, Any]) -> str:
    if "range" in feature:
        low, high = feature["range"]
        return "no numbers" if low is None else f"{write(low)} to {write(high)}"
    return ", ".join(map(write, feature.get("categories", ())))


def _join(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {write(value)}" for name, value in values.items()) or "none"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def write(value: Any) -> str:  # noqa: ANN401 - JSON
    """A value as a reader wants it: texts as they are, numbers to four digits."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.4g}"
    return json.dumps(value, ensure_ascii=False)


def _name(card: Mapping[str, Any]) -> str:
    return "A model without a name" if card["name"] is None else f"{card['name']}, version {card['version']}"


def _escape(text: str) -> str:
    return html.escape(text, quote=True)


def _mark(text: str) -> str:
    """Text in one line of Markdown, without meaning."""
    line = _SPECIAL.sub(r"\\\1", " ".join(text.split()))
    return _OPENING.sub(lambda found: f"{found[1]}\\" if found[1].isdigit() else f"\\{found[1]}", line)


def _mark_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(_mark, cells)) + " |"
