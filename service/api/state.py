"""What one application holds for its views: the settings, the store and the queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import BoundedSemaphore
from typing import cast

from flask import Flask, current_app

from service.jobs.queue import JobQueue
from service.listing.source import Recent, make_recent
from service.settings import Settings
from service.store.models import ModelStore

_KEY = "treewright"


@dataclass(frozen=True, slots=True)
class State:
    """The parts that `create_app` made."""

    settings: Settings
    store: ModelStore
    queue: JobQueue | None = None
    followers: BoundedSemaphore = field(default_factory=BoundedSemaphore)
    recent: Recent = field(default_factory=make_recent)


def register(app: Flask, state: State) -> None:
    """Let views of this app find its state."""
    app.extensions[_KEY] = state


def settings() -> Settings:
    """The settings of the app that handles this request."""
    return cast("State", current_app.extensions[_KEY]).settings


def store() -> ModelStore:
    """The store of the app that handles this request."""
    return cast("State", current_app.extensions[_KEY]).store


def queue() -> JobQueue | None:
    """The queue for background work; None where this installation has none."""
    return cast("State", current_app.extensions[_KEY]).queue


def followers() -> BoundedSemaphore:
    """The seats for callers who follow a job, each of whom keeps a thread."""
    return cast("State", current_app.extensions[_KEY]).followers


def recent() -> Recent:
    """What the recent audits of this app weighed."""
    return cast("State", current_app.extensions[_KEY]).recent
