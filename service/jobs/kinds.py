"""What each kind of job does: a plain dict in, as its request was stored, and how it ended out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from service import comparing, training, verifying
from service.cross_validation import read_plan
from service.evaluation import EvaluationRequest, evaluate
from service.explaining import ExplanationRequest, explain
from service.importance import permute
from service.jobs.progress import follow_growth
from service.jobs.requests import unpack, unpack_permutation, unpack_table
from service.settings import Settings
from service.stability import StabilityRequest, measure_stability
from service.store.models import ModelStore
from service.store.records import Claim
from service.targets import TrainingRequest


@dataclass(frozen=True)
class Work:
    """What a kind of job may use; ``report`` takes how much is done and raises `JobStopped` when that was all."""

    store: ModelStore
    settings: Settings
    claim: Claim
    report: Callable[[float], None]


Kind = Callable[[Mapping[str, Any], Work], Mapping[str, Any] | None]
"""Does the work; returns the result, or None where the work itself has ended the job, in a commit of its own."""


def train(content: Mapping[str, Any], work: Work) -> None:
    """Train a model; its record and the end of the job are one commit."""
    request = unpack(content, TrainingRequest)
    depth = request.parameters.get("max_depth")
    plan = read_plan(request.cross_validation, None)
    # each trial of a cross-validation is about as long as the growth of the model itself
    growth = 1.0 if plan is None else 1.0 / (1 + plan.trials)
    progress = follow_growth(
        lambda done: work.report(growth * done), request.table.rows, depth if isinstance(depth, int) else None
    )
    training.train(
        request,
        work.store,
        work.settings,
        progress=progress,
        report=lambda done: work.report(growth + (1 - growth) * done),
        claim=work.claim,
    )


def measure_splits(content: Mapping[str, Any], work: Work) -> Mapping[str, Any]:
    """How steady a model's splits are."""
    record = work.store.find(content["model"])
    asked = StabilityRequest(content["resamples"], content["seed"])
    return {"model": record.summary(), **measure_stability(record, asked, work.store, work.report)}


def verify(content: Mapping[str, Any], work: Work) -> None:
    """Train a model again and compare; the end of the job and the entry of the audit log are one commit."""
    record = work.store.find(content["model"])
    posted = None if content["training"] is None else unpack(content["training"], TrainingRequest)
    rows = record.body["training"]["rows"] if posted is None else posted.table.rows
    progress = follow_growth(work.report, rows, record.body["parameters"]["max_depth"])
    found = verifying.verify(record, posted, work.store, work.settings, progress)
    entry = verifying.log_verification(record, found, work.claim.job_id)
    work.store.jobs.end(work.claim, "succeeded", result={"model": record.summary(), **found}, entry=entry)


def evaluate_rows(content: Mapping[str, Any], work: Work) -> Mapping[str, Any]:
    """How good a model's answers are."""
    record = work.store.find(content["model"])
    asked = unpack(content["request"], EvaluationRequest)
    return {"model": record.summary(), **evaluate(record, asked, work.store, work.report)}


def permute_features(content: Mapping[str, Any], work: Work) -> Mapping[str, Any]:
    """What a model owes to each feature."""
    record = work.store.find(content["model"])
    asked = unpack_permutation(content["request"])
    return {"model": record.summary(), **permute(record, asked, work.store, work.report)}


def explain_rows(content: Mapping[str, Any], work: Work) -> Mapping[str, Any]:
    """Why rows are answered what they are."""
    record = work.store.find(content["model"])
    asked = unpack(content["request"], ExplanationRequest)
    return {"model": record.summary(), **explain(record, asked, work.store, work.report)}


def compare_models(content: Mapping[str, Any], work: Work) -> Mapping[str, Any]:
    """How two models differ."""
    records = work.store.find(content["model"]), work.store.find(content["with"])
    packed = content["tables"]
    tables = None if packed is None else [unpack_table(table) for table in packed]
    compared = comparing.compare(*records, tables, work.store, work.report)
    return {"a": records[0].summary(), "b": records[1].summary(), **compared}


KINDS: dict[str, Kind] = {
    "train": train,
    "stability": measure_splits,
    "evaluate": evaluate_rows,
    "importance": permute_features,
    "explain": explain_rows,
    "verify": verify,
    "compare": compare_models,
}
