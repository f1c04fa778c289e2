"""Class weights, priors and losses as factors of the classes' weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.objective import alter_classes

POSITIVE = st.lists(st.floats(0.1, 50), min_size=3, max_size=3).map(np.array)


def test_nothing_asked() -> None:
    """Without weights, priors and losses nothing is multiplied."""
    assert alter_classes(np.array([3.0, 5.0]), None, None, None) == (None, None)


@given(POSITIVE, POSITIVE, st.none() | POSITIVE)
def test_priors_are_the_shares(weight: np.ndarray, priors: np.ndarray, class_weight: np.ndarray | None) -> None:
    """With priors the classes weigh in their proportion, whatever the data; the total is unchanged."""
    scored, shown = alter_classes(weight, class_weight, priors, None)
    assert scored is shown is not None
    altered = weight * scored
    assert altered / altered.sum() == pytest.approx(priors / priors.sum(), rel=1e-12)
    total = weight if class_weight is None else weight * class_weight
    assert altered.sum() == pytest.approx(total.sum(), rel=1e-12)


def test_losses_as_rpart_has_them() -> None:
    """With 64 absent and 17 present and losses of 4 and 3, the factors are those of rpart 4.1.19's altered priors."""
    scored, shown = alter_classes(np.array([64.0, 17.0]), None, None, [[0, 4], [3, 0]])
    whole = 64 * 4 + 17 * 3
    assert scored == pytest.approx([4 * 81 / whole, 3 * 81 / whole], rel=1e-15)
    assert shown is None, "probabilities do not see losses"


@given(POSITIVE, POSITIVE)
def test_a_loss_of_one_for_every_mistake_changes_nothing(weight: np.ndarray, priors: np.ndarray) -> None:
    """Equal losses multiply every class alike, with priors as without."""
    equal = (1 - np.eye(3)).tolist()
    assert alter_classes(weight, None, None, equal)[0] == pytest.approx(np.ones(3), rel=1e-12)
    without, _ = alter_classes(weight, None, priors, None)
    assert alter_classes(weight, None, priors, equal)[0] == pytest.approx(without, rel=1e-12)
