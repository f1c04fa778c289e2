"""Rebuild a tree from its audit and predict with it, in thirty lines: nothing is known but `/tree` and `/splits`.

python rebuild_tree.py http://127.0.0.1:8000/models/titanic < rows.json     where rows.json is a list of records

`rebuild_any_tree.py` does so for surrogates and parts of rows, too ("missing": "surrogate" or "fractional").
"""

import json
import sys
from urllib.parse import urljoin
from urllib.request import urlopen


def list_splits(url):
    while url:
        page = json.load(urlopen(url))
        yield from page["splits"]
        url = page["next"] and urljoin(url, page["next"])


def find_branch(split, children, value):  # None where the split does not know the value
    groups = split.get("categories", [])
    if split["type"] == "missing":
        return int(value is not None)
    if value is None and not any(None in group for group in groups):
        heaviest = max(range(len(children)), key=lambda branch: nodes[children[branch]]["weight"])
        return {"left": 0, "right": 1, "branch": 2}.get(way := split.get("missing", heaviest), way)
    if split["type"] == "threshold":
        return int(value > float(split["threshold"]))
    return next((branch for branch, group in enumerate(groups) if value in group), None)


def answer(row):
    node = nodes[0]
    while chosen := taken.get(node["node"]):
        branch = find_branch(chosen["split"], node["children"], row.get(chosen["feature"]))
        if branch is None:
            break
        node = nodes[node["children"][branch]]
    return node["prediction"]


nodes = json.load(urlopen(f"{sys.argv[1]}/tree"))["nodes"]
taken = {split["node"]: split for split in list_splits(f"{sys.argv[1]}/splits?chosen=true&limit=1000")}
print(json.dumps([answer(row) for row in json.load(sys.stdin)]))
