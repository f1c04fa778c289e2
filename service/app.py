"""The one place where the parts meet: settings, store, resources, errors, request ids."""

from __future__ import annotations

import os
from threading import BoundedSemaphore

from flask import Flask

from service import __version__
from service.api import (
    aliases,
    arguments,
    audit_log,
    card,
    compare,
    docs,
    errors,
    evaluate,
    explain,
    health,
    importance,
    jobs,
    models,
    predict,
    pruning,
    requests,
    score,
    splits,
    stability,
    state,
    train,
    tree,
    verify,
    what_if,
)
from service.api.json import OrjsonProvider
from service.api.shortcut import Shortcut
from service.jobs.queue import JobQueue
from service.listing.source import make_recent
from service.settings import Settings
from service.store.models import ModelStore
from service.telemetry import configure_logging

RESOURCES = (
    train.blueprint,
    models.blueprint,
    aliases.blueprint,
    splits.blueprint,
    stability.blueprint,
    score.blueprint,
    what_if.blueprint,
    tree.blueprint,
    predict.blueprint,
    explain.blueprint,
    compare.blueprint,
    pruning.blueprint,
    verify.blueprint,
    card.blueprint,
    evaluate.blueprint,
    importance.blueprint,
    jobs.blueprint,
    audit_log.blueprint,
    health.blueprint,
)
"""Every resource, in the order of the documentation."""


def create_app(settings: Settings | None = None) -> Flask:
    """The WSGI application, with its own connections: make it once in each process, after the fork.

    ``settings`` come from the environment unless they are given. Raises `SettingsError` when they cannot be used.
    """
    settings = settings or Settings.from_environment(os.environ)
    configure_logging(settings.log_level)
    app = Flask(__name__, static_folder=None)
    app.json = OrjsonProvider(app)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    app.url_map.strict_slashes = False  # the same handler with a slash at the end, no redirect
    app.url_map.merge_slashes = False
    store = ModelStore.open(settings)
    # Half of the threads may be with callers who follow jobs: the others answer.
    followers = BoundedSemaphore(max(1, settings.threads // 2))
    recent = make_recent(settings.audit_bytes)
    parts = state.State(settings, store, JobQueue.open(store, settings), followers, recent)
    state.register(app, parts)
    requests.register(app)
    arguments.register(app)
    errors.register(app)
    description = docs.describe(app, __version__)
    for resource in RESOURCES:
        description.register_blueprint(resource)
    app.register_blueprint(docs.blueprint)
    app.wsgi_app = Shortcut(app.wsgi_app, parts)  # type: ignore[method-assign] # as Flask's documentation shows
    return app
