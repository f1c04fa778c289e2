"""Streams of listings: what goes wrong on the way is not taken for the end."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from service.core.criteria import CLASS_MEASURES
from service.core.tree import Tree
from service.formats.layout import Chunk, count_chunk, lay_out
from service.formats.writers import ARROW, WRITERS
from service.listing.query import SplitQuery
from service.listing.source import make_recent, open_source
from service.store.records import ModelRecord
from service.streaming import end_noted, list_chunks, stream_splits
from tests.making import Trainer

END_OF_ARROW = b"\xff\xff\xff\xff\0\0\0\0"


@pytest.fixture
def record(trainer: Trainer) -> ModelRecord:
    """A small model."""
    return trainer({"x": [1, 2, 3, 4, 5, 6], "name": list("pqrpqr"), "y": list("aababb")})


@pytest.mark.parametrize("media_type", WRITERS)
def test_a_broken_stream_has_no_end(
    trainer: Trainer, record: ModelRecord, media_type: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Where a node cannot be listed the iterator raises, after what went before, without a format's own end mark.

    The server then closes the connection without the last chunk; the log says how far it came, and no total is kept.
    """
    tree = Tree.from_arrays(trainer.store.load_tree(record))

    def break_off() -> Iterator[Chunk]:
        yield from whole
        raise OSError("the disk is gone")

    source = open_source(record, tree, trainer.store, make_recent())
    whole = list(list_chunks(source, tree, SplitQuery(sort="position")))
    count = sum(map(count_chunk, whole))
    layout = lay_out(tree, list(CLASS_MEASURES), {})
    written: list[bytes] = []
    parts = WRITERS[media_type](end_noted(record, trainer.store, SplitQuery(), break_off()), layout)
    with caplog.at_level(logging.ERROR), pytest.raises(OSError, match="disk"):
        written.extend(parts)
    assert b"".join(written)
    assert not b"".join(written).endswith(END_OF_ARROW)
    assert any("broke off" in line.message and line.splits == count for line in caplog.records)  # type: ignore[attr-defined] # given as extra
    assert trainer.store.find(record.id).splits_total is None
    ended = b"".join(stream_splits(record, SplitQuery(), trainer.store, make_recent(), media_type))
    assert ended.endswith(END_OF_ARROW) == (media_type == ARROW)
