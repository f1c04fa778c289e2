"""Whole listings, streamed: by feature and cut, node by node, in memory that does not grow with the listing."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

import numpy as np

from service.auditing import check_query, read_cursor
from service.core.statistics import Ints
from service.core.tree import Tree
from service.formats.layout import Chunk, count_chunk, lay_out
from service.formats.writers import WRITERS, check_format
from service.listing.query import SplitQuery
from service.listing.source import Recent, Source, open_source
from service.store.models import ModelStore
from service.store.records import ModelRecord

log = logging.getLogger(__name__)
CHUNK = 2048
"""Candidates are rendered so many at a time: their cells then stay in the processor's cache until they are joined."""


def stream_splits(
    record: ModelRecord, query: SplitQuery, store: ModelStore, recent: Recent, media_type: str
) -> Iterator[bytes]:
    """The candidates that ``query`` wants, by position, from its cursor on to the last: see `formats.writers.WRITERS`.

    Its ``limit`` is not asked. Raises, before anything is streamed, what `auditing.list_splits` raises, and
    `NotAcceptable`. What goes wrong later is raised by the iterator, so that no stream that is cut short ends well.
    """
    check_format(media_type)
    tree = Tree.from_arrays(store.load_tree(record))
    source = open_source(record, tree, store, recent)
    chunks = list_chunks(source, tree, query)
    notes = {"model": record.id, "retention": record.retention, "warnings": "; ".join(source.warnings(query))}
    return WRITERS[media_type](end_noted(record, store, query, chunks), lay_out(tree, source.measures, notes))


def list_chunks(source: Source, tree: Tree, query: SplitQuery) -> Iterator[Chunk]:
    """What is streamed, before it is written; raises at once what a query cannot ask."""
    query = replace(query, sort="position")
    check_query(query, tree, source)
    nodes = np.flatnonzero(tree.rows > 0) if query.node is None else np.array([query.node])
    return _walk_nodes(source, nodes, query, read_cursor(query.cursor, nodes))


def _walk_nodes(source: Source, nodes: Ints, query: SplitQuery, start: tuple[int, int]) -> Iterator[Chunk]:
    """Up to `CHUNK` candidates at a time."""
    begin_node, begin = start
    for view in source.stream_nodes(nodes[nodes >= begin_node], query):
        yield from view.stream(begin if view.node == begin_node else 0, CHUNK)


def end_noted(record: ModelRecord, store: ModelStore, query: SplitQuery, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The chunks; the log tells how they ended, and where they were the whole listing their number is kept."""
    began, count = perf_counter(), 0
    facts = {"model": record.id}
    try:
        for chunk in chunks:
            count += count_chunk(chunk)
            yield chunk
    except Exception:
        log.exception("a stream of splits broke off", extra=facts | {"splits": count})
        raise
    log.info("splits streamed", extra=facts | {"splits": count, "seconds": round(perf_counter() - began, 4)})
    if query.is_whole and query.cursor is None:
        store.note_total(record, count)
