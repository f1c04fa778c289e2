"""No room left: one name for it, whoever says so."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from service.errors import StorageFull

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def told_when_full() -> Iterator[None]:
    """Raise `StorageFull` when the disk, a quota, a file size limit or the database is what stopped the body."""
    try:
        yield
    except (OSError, DBAPIError) as error:
        if not _is_full(error):
            raise
        raise StorageFull("there is no room left to store this; delete models or enlarge the storage") from error


def _is_full(error: OSError | DBAPIError) -> bool:
    if isinstance(error, OSError):
        return error.errno in FULL
    if isinstance(error.orig, sqlite3.Error):
        return error.orig.sqlite_errorcode == sqlite3.SQLITE_FULL
    return getattr(error.orig, "sqlstate", None) == "53100"  # PostgreSQL's disk_full
