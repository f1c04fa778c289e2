"""Real data sets that the package ships, so that a new installation has something to show.

``titanic.csv`` is TitanicSurvival of the R package carData: 1,309 passengers of the Titanic, the age of 263 unknown.
The fourteen days of tennis are the training set of Quinlan, Induction of Decision Trees, Machine Learning 1, 1986.
"""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Any

TENNIS_DAYS = """
    Sunny Hot High Weak No, Sunny Hot High Strong No, Overcast Hot High Weak Yes, Rain Mild High Weak Yes,
    Rain Cool Normal Weak Yes, Rain Cool Normal Strong No, Overcast Cool Normal Strong Yes, Sunny Mild High Weak No,
    Sunny Cool Normal Weak Yes, Rain Mild Normal Weak Yes, Sunny Mild Normal Strong Yes, Overcast Mild High Strong Yes,
    Overcast Hot Normal Weak Yes, Rain Mild High Strong No
"""


def train_titanic() -> dict[str, Any]:
    """The body of ``POST /train`` that grows the sample model ``titanic``."""
    text = files(__name__).joinpath("titanic.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    columns: dict[str, list[Any]] = {
        name: [row[name] for row in rows] for name in ("survived", "sex", "passengerClass")
    }
    columns["age"] = [float(row["age"]) if row["age"] else None for row in rows]
    return {
        "name": "titanic",
        "target": "survived",
        "positive_class": "yes",
        "parameters": {"max_depth": 4, "min_samples_leaf": 10},
        "tags": {"source": "carData::TitanicSurvival"},
        "data": {"columns": columns},
    }


def train_tennis() -> dict[str, Any]:
    """The body of ``POST /train`` that grows ``play-tennis``, small enough to be read in a terminal."""
    return {
        "name": "play-tennis",
        "target": "play",
        "algorithm": "id3",
        "data": {
            "header": ["outlook", "temperature", "humidity", "wind", "play"],
            "rows": [day.split() for day in TENNIS_DAYS.split(",")],
        },
    }


PASSENGERS = [
    {"sex": "female", "age": 29, "passengerClass": "1st"},
    {"sex": "male", "age": None, "passengerClass": "3rd"},
]
"""Rows to predict with ``titanic``."""

DAYS = [{"outlook": "Sunny", "temperature": "Cool", "humidity": "High", "wind": "Strong"}]
"""Rows to predict with ``play-tennis``."""
