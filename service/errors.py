"""What can go wrong around the learner, in the words of the service; the learner's own are in `service.core.errors`.

    ServiceError
    ├── SettingsError        a setting, or what it points at, cannot be used: the service does not start
    ├── MalformedBody        a request's body is not what its media type says
    ├── BodyTooLarge         a request's body is over the limit
    ├── UnsupportedMedia     a request's body is of a kind that nobody here reads
    ├── NotAcceptable        an answer in this format cannot be written by this installation
    ├── InvalidRequest       well-formed and wrong: a name, a tag, a cursor
    ├── NotFound             no such model, or no such node in it
    ├── Conflict             the request and what is stored do not fit together
    │   └── NotRetained      the answer needs data that the model did not keep
    ├── PreconditionFailed   what is there is not what the caller has seen
    ├── QueueFull            as many jobs wait as the service takes on
    ├── WorkerLost           a job ended the worker that ran it, again and again
    ├── DamagedModel         a model's file is not the one that was stored
    └── StorageFull          there is no room to write

They know nothing of HTTP: one table in ``service/api/errors.py`` gives them status codes.
"""

from __future__ import annotations

from collections.abc import Sequence

from service.core.errors import Fault


class ServiceError(Exception):
    """Root of the service's errors: a sentence for the caller, and the faults with their places (perhaps none)."""

    def __init__(self, message: str, faults: Sequence[Fault] | Fault = ()) -> None:
        self.faults = (faults,) if isinstance(faults, Fault) else tuple(faults)
        super().__init__(message)


class SettingsError(ServiceError):
    """The operator has to change a setting before the service can start; the message names the variable."""


class MalformedBody(ServiceError):
    """The body cannot be parsed at all, so no place in it can be named."""


class BodyTooLarge(ServiceError):
    """Stops a body before it fills the memory that other requests need."""


class UnsupportedMedia(ServiceError):
    """The body's media type, or its absence, leaves open how to read it."""


class NotAcceptable(ServiceError):
    """The caller has to accept another format, or the operator to install what writes this one."""


class InvalidRequest(ServiceError):
    """The envelope of a request has to be changed; for its data there is `service.core.errors.InvalidData`."""


class NotFound(ServiceError):
    """What was asked for is not there, or not any more."""


class Conflict(ServiceError):
    """The caller has to say more precisely what is meant, such as which version of a name to delete."""


class NotRetained(Conflict):
    """The model was trained without keeping what the answer needs; train it again with ``retain``."""


class PreconditionFailed(ServiceError):
    """The caller has set a condition, so that a change which it has not seen is not undone by its own."""


class QueueFull(ServiceError):
    """The caller has to come back later: a queue without a bound would hide that the work does not get done."""


class JobStopped(Exception):
    """Ends a job from the inside, at the next place where it asks whether it may go on; no caller sees it."""


class WorkerLost(ServiceError):
    """A job cannot be run here, for its worker dies each time."""


class DamagedModel(ServiceError):
    """The file's hash or format is not the recorded one; it is refused unread, since to unpickle is to execute."""


class StorageFull(ServiceError):
    """The disk, a quota or the database has no room left; nothing was stored."""
