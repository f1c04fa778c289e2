"""A fit as rpart 4.1.19 prints it, by its print.rpart, printcp and summary.rpart: `print`, `printcp`, `summary`."""

from __future__ import annotations

from collections.abc import Sequence

from tests.reference.r_printing import (
    format_g,
    format_numbers,
    pad_left,
    pad_right,
    print_matrix,
    print_named,
    signif,
)
from tests.reference.rpart_fit import Fit, Node, Split

WIDE = 25
"""Descriptions of splits are made equally wide unless one is as wide as this."""


def print_tree(fit: Fit, digits: int = 7) -> list[str]:
    """`print(fit)`: the tree, a line a node."""
    kind = "loss, yval, (yprob)" if fit.classes else "deviance, yval"
    lines = [f"n= {fit.nodes[1].n} ", "", f"node), split, n, {kind}", "      * denotes terminal node", ""]
    nodes = list(fit.nodes.values())
    numbers = pad_left([str(node.number) for node in nodes])
    devs = format_numbers([signif(node.dev, digits) for node in nodes], digits)
    for node, number, dev, answer in zip(nodes, numbers, devs, _print_answers(fit, digits), strict=True):
        indent = "  " * (node.number.bit_length() - 1)
        label, star = _label(fit, node, digits), "*" if node.leaf else " "
        lines.append(f"{indent}{number}) {label} {node.n} {dev} {answer} {star}")
    return lines


def _print_answers(fit: Fit, digits: int) -> list[str]:
    nodes = fit.nodes.values()
    if not fit.classes:
        return format_numbers([signif(float(node.answer), digits) for node in nodes], digits)
    flat = [share for node in nodes for share in node.probabilities]
    texts = iter(format_numbers(flat, digits, nsmall=min(20, digits)))
    return [f"{node.answer} ({' '.join(next(texts) for _ in fit.classes)})" for node in nodes]


def _label(fit: Fit, node: Node, digits: int) -> str:
    """What leads to a node."""
    if node.number == 1:
        return "root"
    split, left = fit.nodes[node.number // 2].primary[0], node.number % 2 == 0
    if split.sides:
        names = zip(fit.features[split.feature], split.sides, strict=True)
        return f"{split.feature}={','.join(name for name, side in names if side == ('L' if left else 'R'))}"
    sign = "< " if left == (split.ncat < 0) else ">="
    return f"{split.feature}{sign}{format_g(split.index, digits)}"


def print_cp(fit: Fit, digits: int = 7) -> list[str]:
    """`printcp(fit)` from the features that are used on, without the columns that cross-validation makes."""
    root = fit.nodes[1]
    used = sorted({node.primary[0].feature for node in fit.nodes.values() if not node.leaf})
    return [
        "Variables actually used in tree construction:",
        " ".join(["[1]", *pad_right(used)]),
        "",
        f"Root node error: {_short(root.dev, digits)}/{root.n} = {_short(root.dev / root.n, digits)}",
        "",
        f"n= {root.n} ",
        "",
        *print_cptable(fit, digits),
    ]


def print_cptable(fit: Fit, digits: int = 7) -> list[str]:
    """`fit$cptable`: CP, nsplit and rel error."""
    alphas, splits, errors = zip(*fit.cptable, strict=True)
    columns = [
        ("CP", format_numbers(alphas, digits)),
        ("nsplit", [str(count) for count in splits]),
        ("rel error", format_numbers(errors, digits)),
    ]
    return print_matrix([str(place + 1) for place in range(len(alphas))], columns)


def print_summary(fit: Fit, digits: int = 7) -> list[str]:
    """`summary(fit)` without its call."""
    head = [f"  n= {fit.nodes[1].n} ", "", *print_cptable(fit, digits), "", *_print_importance(fit), ""]
    return [*head, *print_nodes(fit, digits)]


def print_nodes(fit: Fit, digits: int = 7) -> list[str]:
    """The part of `summary(fit)` that begins with the first node."""
    lines = []
    every = [split for node in fit.nodes.values() for split in [*node.primary, *node.surrogates]]
    texts = dict(zip(map(id, every), _describe_cuts(every, digits), strict=True))
    for node in sorted(fit.nodes.values(), key=lambda each: each.number):
        lines += _print_node(fit, node, digits)
        if not node.leaf:
            lines += _print_splits(fit, node, [texts[id(s)] for s in [*node.primary, *node.surrogates]], digits)
        lines.append("")
    return lines


def _print_importance(fit: Fit) -> list[str]:
    total = sum(fit.importance.values())
    rounded = {name: f"{round(100 * value / total)}" for name, value in fit.importance.items()}
    shown = {name: text for name, text in rounded.items() if text != "0"}
    return ["Variable importance", *print_named(list(shown), list(shown.values()))] if shown else []


def _describe_cuts(splits: Sequence[Split], digits: int) -> list[str]:
    """How each split divides; numeric cuts are equally wide throughout the tree."""
    cuts = [f"< {_short(split.index, digits)}" for split in splits if not split.sides]
    padded = iter(pad_right(cuts))
    return [
        f"splits as  {split.sides},"
        if split.sides
        else f"{next(padded)} to the {'right,' if split.ncat == 1 else 'left, '}"
        for split in splits
    ]


def _print_node(fit: Fit, node: Node, digits: int) -> list[str]:
    """The head of a node and what is known of its rows."""
    alpha = fit.complexity.get(node.number)
    complexity = "" if node.leaf or alpha is None else f",    complexity param={_short(alpha, digits)}"
    head = f"Node number {node.number}: {node.n} observations{complexity}"
    if node.events is not None:
        rate, mean = format_g(float(node.answer), digits), format_g(node.dev / node.n, digits)
        events = format_g(node.events, digits)
        return [head, f"  events={events},  estimated rate={rate} , mean deviance={mean} "]
    if not fit.classes:
        return [head, f"  mean={format_g(float(node.answer), digits)}, MSE={format_g(node.dev / node.n, digits)} "]
    answer = str(node.answer).ljust(max(len(str(other.answer)) for other in fit.nodes.values()))
    loss = node.dev / (fit.nodes[1].n * node.share)
    return [
        head,
        f"  predicted class={answer}  expected loss={format_g(loss, digits)}  P(node) ={format_g(node.share, digits)}",
        f"    class counts: {' '.join(f'{count:5g}' for count in node.counts)}",
        f"   probabilities: {' '.join(f'{share:5.3f}' for share in node.probabilities)} ",
    ]


def _print_splits(fit: Fit, node: Node, cuts: Sequence[str], digits: int) -> list[str]:
    """The children, the primary splits and the surrogates of a node."""
    left, right = (2 * node.number + side for side in (0, 1))
    first, others = cuts[: len(node.primary)], cuts[len(node.primary) :]
    improve = format_numbers([signif(split.improve, digits) for split in node.primary], digits)
    lines = [
        f"  left son={left} ({fit.nodes[left].n} obs) right son={right} ({fit.nodes[right].n} obs)",
        "  Primary splits:",
    ]
    lines += [
        f"      {name} {cut} improve={text}, ({node.n - split.count} missing)"
        for split, name, cut, text in zip(node.primary, _names(node.primary), _align(first), improve, strict=True)
    ]
    if not node.surrogates:
        return lines
    agree = format_numbers([round(split.improve, 3) for split in node.surrogates], digits)
    adj = format_numbers([round(split.adj, 3) for split in node.surrogates], digits)
    columns = zip(node.surrogates, _names(node.surrogates), _align(others), agree, adj, strict=True)
    return [
        *lines,
        "  Surrogate splits:",
        *(f"      {name} {cut} agree={a}, adj={b}, ({split.count} split)" for split, name, cut, a, b in columns),
    ]


def _names(splits: Sequence[Split]) -> list[str]:
    return pad_right([split.feature for split in splits])


def _align(cuts: Sequence[str]) -> Sequence[str]:
    return pad_right(cuts) if all(len(cut) < WIDE for cut in cuts) else cuts


def _short(value: float, digits: int) -> str:
    return format_numbers([signif(value, digits)], digits)[0]
