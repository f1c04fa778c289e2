"""`/jobs`: background work, listed, shown, followed and cancelled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import Any

from flask import Response, request, stream_with_context, url_for
from marshmallow import Schema, fields

from service.api.blueprint import Resource
from service.api.errors import recall_problem
from service.api.fields import Anything, Envelope, PageLimit, choice, text
from service.api.json import answer, encode
from service.api.models import next_url
from service.api.state import followers, queue, settings, store
from service.core.errors import Fault
from service.errors import QueueFull
from service.jobs.queue import JobQueue
from service.store.jobs import JobStore
from service.store.records import JobRecord

A_JOB = "A job does it: with `Prefer: respond-async`, or where it takes long"

blueprint = Resource("jobs", __name__, description="Background work")

EVENT_SECONDS = 0.25
"""How often the state of a job is looked at for those who follow it."""
SILENCE_SECONDS = 15.0
"""A comment is sent after so long, for proxies close what is silent."""

_JOB = {"name": "job_id", "in": "path", "required": True, "description": "The job's id", "schema": {"type": "string"}}
_STATES = ("queued", "running", "succeeded", "failed", "cancelled")


class JobSchema(Schema):
    """A piece of background work and how far it is."""

    id = fields.String(required=True)
    kind = fields.String(required=True, metadata={"description": "What it does, such as `train`"})
    subject = Anything({"type": "object", "description": "What it is about"}, required=True)
    state = fields.String(required=True, metadata={"enum": list(_STATES)})
    progress = fields.Float(required=True, metadata={"description": "From 0 to 1, by rows x levels done"})
    seconds_left = fields.Float(
        required=True, allow_none=True, metadata={"description": "An estimate, while it runs; else null"}
    )
    cancelling = fields.Boolean(required=True, metadata={"description": "Someone has asked for its end"})
    created = fields.DateTime(required=True)
    started = fields.DateTime(required=True, allow_none=True)
    ended = fields.DateTime(required=True, allow_none=True)
    model = fields.String(required=True, allow_none=True, metadata={"description": "The id of the model that it made"})
    result = Anything({"type": ["object", "null"], "description": "What it found, where it made no model"})
    problem = Anything({"type": ["object", "null"], "description": "Why it failed, as a problem of RFC 9457"})
    links = Anything({"type": "object"}, required=True)


class JobPageSchema(Schema):
    """One page of jobs, newest first."""

    jobs = fields.List(fields.Nested(JobSchema), required=True)
    next = fields.String(
        required=True, allow_none=True, metadata={"description": "The URL of the next page; null on the last"}
    )


class JobQuery(Envelope):
    """Which jobs to list."""

    state = choice("Only jobs in this state", *_STATES)
    limit = PageLimit()
    cursor = text("Where the page begins: taken from the `next` of the page before")


@blueprint.route("/jobs", methods=["GET"])
@blueprint.arguments(JobQuery, location="query")
@blueprint.response(200, JobPageSchema)
@blueprint.problems(422)
def list_jobs(query: dict[str, Any]) -> Response:
    """List jobs, newest first; jobs that are added meanwhile do not shift the pages."""
    jobs, cursor = store().jobs.list(state=query.get("state"), limit=query["limit"], cursor=query.get("cursor"))
    return answer({"jobs": [show_job(job) for job in jobs], "next": next_url(cursor)})


@blueprint.route("/jobs/<job_id>", methods=["GET"], parameters=[_JOB])
@blueprint.response(200, JobSchema)
@blueprint.problems(404)
def get_job(job_id: str) -> Response:
    """Show how far a job is, and how it ended."""
    return answer(show_job(store().jobs.find(job_id)))


@blueprint.route("/jobs/<job_id>", methods=["DELETE"], parameters=[_JOB])
@blueprint.response(200, JobSchema)
@blueprint.alt_response(202, schema=JobSchema, description="It runs, and will end within a level of the tree")
@blueprint.problems(404, 409)
def cancel_job(job_id: str) -> Response:
    """Cancel a job: one that waits at once, one that runs within a level of its tree."""
    jobs = queue()
    job = jobs.cancel(job_id) if jobs is not None else store().jobs.cancel(job_id)
    return answer(show_job(job), 200 if job.has_ended else 202)


@blueprint.route("/jobs/<job_id>/events", methods=["GET"], parameters=[_JOB])
@blueprint.response(200, description="Server-sent events", content_type="text/event-stream")
@blueprint.problems(404, 429)
def follow_job(job_id: str) -> Response:
    """Follow a job by server-sent events.

    Each event is named after the job's state and has the job as its data; the last one is that of its end.
    """
    jobs, seats = store().jobs, followers()
    first = jobs.find(job_id)
    if not seats.acquire(blocking=False):
        raise QueueFull("as many callers follow jobs as this process has room for; ask for the job itself meanwhile")
    response = Response(stream_with_context(_write_events(jobs, first)), mimetype="text/event-stream")
    response.call_on_close(seats.release)  # whatever becomes of the caller, the server closes the response
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    return response


def _write_events(jobs: JobStore, job: JobRecord) -> Iterator[bytes]:
    """An event whenever something has changed, up to the one that says how the job ended."""
    told, shown = monotonic(), None
    while True:
        state = (job.state, job.progress, job.cancelling)
        if state != shown:
            shown, told = state, monotonic()
            yield b"event: %s\ndata: %s\n\n" % (job.state.encode(), encode(show_job(job)))
        elif monotonic() - told >= SILENCE_SECONDS:
            told = monotonic()
            yield b": still there\n\n"
        if job.has_ended:
            return
        sleep(EVENT_SECONDS)
        job = jobs.find(job.id)


def prefers_job() -> bool:
    """Whether the caller asks for an answer at once and the work later (RFC 7240, `respond-async`)."""
    preferences = ",".join(request.headers.getlist("Prefer")).split(",")
    return any(preference.partition(";")[0].strip().lower() == "respond-async" for preference in preferences)


def queue_for(cells: int) -> JobQueue | None:
    """The queue where a job is to go through so many rows x columns; None where the caller waits for it."""
    return queue() if prefers_job() or cells > settings().job_cells else None


def answer_job(job: JobRecord) -> Response:
    """The answer to a request that has become a job: 202, and where to ask for it."""
    headers = {"Location": url_for("jobs.get_job", job_id=job.id)}
    if prefers_job():
        headers["Preference-Applied"] = "respond-async"
    return answer(show_job(job), 202, headers)


def show_job(job: JobRecord) -> dict[str, Any]:
    """A job as `JobSchema` describes it."""
    links = {
        "self": url_for("jobs.get_job", job_id=job.id),
        "events": url_for("jobs.follow_job", job_id=job.id),
    }
    if job.model_id is not None:
        links["model"] = url_for("models.get_model", reference=job.model_id)
    return {
        "id": job.id,
        "kind": job.kind,
        "subject": job.subject,
        "state": job.state,
        "progress": round(job.progress, 4),
        "seconds_left": estimate_seconds(job, datetime.now(UTC)),
        "cancelling": job.cancelling,
        "created": job.created,
        "started": job.started,
        "ended": job.ended,
        "model": job.model_id,
        "result": job.result,
        "problem": None if job.problem is None else _show_problem(job.problem),
        "links": links,
    }


def estimate_seconds(job: JobRecord, now: datetime) -> float | None:
    """The time left if the rest goes as what was done; None where nothing is known yet."""
    if job.state != "running" or job.started is None or job.progress <= 0:
        return None
    spent = (now - job.started).total_seconds()
    return round(spent * (1 - job.progress) / job.progress, 1)


def _show_problem(problem: Mapping[str, Any]) -> dict[str, object]:
    faults = [Fault(fault["place"], fault["message"]) for fault in problem["faults"]]
    return recall_problem(problem["kind"], problem["message"], faults)
