"""Rebuild a model from its audit and predict with it: nothing is known but what `/tree` and `/splits` say.

python rebuild_tree.py http://127.0.0.1:8000/models/titanic < rows.json     where rows.json is a list of records
"""

import json
import sys
from urllib.parse import urljoin
from urllib.request import urlopen


def fetch(url):
    return json.load(urlopen(url))


def find_branch(test, value):  # None where the test does not know
    if test["type"] == "missing" or value is None:
        lacking = [i for i, group in enumerate(test.get("categories", [])) if None in group]
        return int(value is not None) if test["type"] == "missing" else lacking[0] if lacking else None
    if test["type"] != "threshold":
        return next((i for i, group in enumerate(test["categories"]) if value in group), None)
    return int((value <= float(test["threshold"])) != (test.get("below_to", "left") == "left"))


def descend(row):  # the nodes where parts of the row end, with their shares
    ended, parts = [], [(0, 1.0)]
    for at, share in parts:
        split = tests.get(at, {"split": {"missing": "stays"}, "feature": None})
        value, way, children = row.get(split["feature"]), split["split"].get("missing"), nodes[at]["children"]
        known = [split["split"]] if children else []
        branch = next((b for test in known if (b := find_branch(test, value)) is not None), None)
        for stand in stands.get(at, []) if children else []:
            branch = find_branch(stand["split"], row.get(stand["feature"])) if branch is None else branch
        if branch is None and children and way == "parts":
            parts += [(child, share * s) for child, s in zip(children, split["split"]["shares"], strict=True) if s]
        elif branch is None and (way == "stays" or not children or (value is not None and at not in stands)):
            ended.append((at, share))
        elif branch is None:
            heaviest = max(range(len(children)), key=lambda i: nodes[children[i]]["weight"])
            parts.append((children[{"left": 0, "right": 1, "branch": 2, None: heaviest}.get(way, way)], share))
        else:
            parts.append((children[branch], share))
    return ended


def answer(row):
    ended = descend(row)
    if len(ended) == 1 or not tree["classes"]:
        return nodes[ended[0][0]]["prediction"] if len(ended) == 1 else sum(s * nodes[n]["mean"] for n, s in ended)
    mixed = [sum(s * nodes[n]["counts"][k] / nodes[n]["weight"] for n, s in ended) for k in range(len(tree["classes"]))]
    return tree["classes"][next(k for k, p in enumerate(mixed) if p >= max(mixed) - 1e-12)]


model = sys.argv[1]
tree, page = fetch(f"{model}/tree"), {"next": f"{model}/splits?chosen=true&limit=1000"}
nodes, tests, stands = tree["nodes"], {}, {}
while page["next"]:
    page = fetch(urljoin(model, page["next"]))
    tests |= {split["node"]: split for split in page["splits"]}
    stands |= {node["node"]: node["surrogates"] for node in page["nodes"] if "surrogates" in node}
print(json.dumps([answer(row) for row in json.load(sys.stdin)]))
