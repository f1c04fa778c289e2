"""Several processes on one store: each sees what the others did, and one that dies harms nobody."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from service.errors import NotFound
from service.settings import Settings
from service.store import ModelStore
from tests.store.making import draft, files_below, finish, hear, keep_from_writing, model_file, say, start

# Stops in the middle of writing, once it has said so, until it hears a line.
WRITE_SLOWLY = """
import numpy as np

class Slow:
    def __reduce__(self):
        print("writing", flush=True)
        input()
        return int, (7,)

print(store.add(draft("slow", tree={"threshold": np.arange(1000), "slow": Slow()})).id)
"""


def test_versions_from_processes(settings: Settings) -> None:
    """Processes that start on an empty directory and train one name at once give out 1 to 30, each once."""
    program = "print(*(store.add(draft('a')).version for _ in range(10)))"
    running = [start(settings, program) for _ in range(3)]
    versions = sorted(int(version) for process in running for version in finish(process).split())
    assert versions == list(range(1, 31))


def test_another_process_sees_it(store: ModelStore, settings: Settings) -> None:
    """A model is found by another process as soon as it is added, and no more as soon as it is deleted."""
    program = """
from service.errors import NotFound
print("ready", flush=True)
for reference in iter(input, "end"):
    try:
        record = store.find(reference)
        print(record.id, store.load_tree(record)["threshold"].sum(), flush=True)
    except NotFound:
        print("absent", flush=True)
"""
    other = start(settings, program)
    assert hear(other) == "ready"

    def ask() -> str:
        say(other, "a")
        return hear(other)

    assert ask() == "absent"
    record = store.add(draft("a"))
    assert ask() == f"{record.id} 10.0"
    store.delete("a")
    assert ask() == "absent"
    say(other, "end")
    finish(other)


def test_what_another_process_adds_is_seen(store: ModelStore, settings: Settings) -> None:
    """A model that another process added is found and loaded here, and its deletion there is seen here."""
    finish(start(settings, "store.add(draft('a'))"))
    record = store.find("a")
    threshold = store.load_tree(record)["threshold"]
    finish(start(settings, "store.delete('a')"))
    with pytest.raises(NotFound):
        store.find("a")
    assert threshold.sum() == 10


def test_killed_while_writing(store: ModelStore, open_store: Callable[[], ModelStore], settings: Settings) -> None:
    """What a killed writer leaves is no model for anyone, and the next start removes it."""
    writer = start(settings, WRITE_SLOWLY)
    assert hear(writer) == "writing"
    writer.kill()
    writer.communicate()
    assert len(files_below(settings)) == 1
    assert store.list(limit=1) == ([], None)
    open_store()
    assert files_below(settings) == []
    assert store.add(draft("slow")).version == 1


def test_a_start_spares_a_live_writer(open_store: Callable[[], ModelStore], settings: Settings) -> None:
    """A worker that starts while another one writes leaves its files alone, and the model becomes whole."""
    writer = start(settings, WRITE_SLOWLY)
    assert hear(writer) == "writing"
    store = open_store()
    assert len(files_below(settings)) == 1
    say(writer, "go on")
    assert finish(writer).strip() == store.find("slow").id
    assert store.load_tree(store.find("slow"))["slow"] == 7


def test_killed_before_the_record(store: ModelStore, open_store: Callable[[], ModelStore], settings: Settings) -> None:
    """Files that are complete and have no record yet are spared while their writer lives, and swept once it is dead."""
    writer = start(settings, "print('open', flush=True)\ninput()\nstore.add(draft('a'))")
    assert hear(writer) == "open"
    with keep_from_writing(settings):  # the record has to wait
        say(writer, "go on")
        wait_for(lambda: any(not path.parent.name.startswith(".new-") for path in files_below(settings)))
        folder = files_below(settings)[0].parents[1]
        assert store._files.sweep(store._list_ids) == []
        assert len(files_below(settings)) == 1
        writer.kill()
        writer.communicate()
    assert store.list(limit=1) == ([], None)
    open_store()
    assert [path.name for path in folder.iterdir()] == [".lock"]


def test_killed_while_deleting(store: ModelStore, open_store: Callable[[], ModelStore], settings: Settings) -> None:
    """A process that dies between deleting the record and the files leaves no model, and the next start no files."""
    record = store.add(draft("a"))
    program = "import os, shutil\nshutil.rmtree = lambda *_, **__: os.kill(os.getpid(), 9)\nstore.delete('a')"
    process = start(settings, program)
    process.communicate(timeout=60)
    assert process.returncode == -9
    assert model_file(settings, record.id).exists()
    with pytest.raises(NotFound):
        store.find("a")
    open_store()
    assert files_below(settings) == []


def wait_for(happened: Callable[[], bool]) -> None:
    """Wait until something is so, for half a minute at most."""
    end = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)
