"""Work on several cores gives what work on one gives, and never waits for itself."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from service.core.parallel import POOL, count_cores, run_parallel


def name_thread(_: int) -> str:
    """The name of the thread that does the task."""
    return threading.current_thread().name


def test_results_keep_the_order_of_tasks() -> None:
    """Results stand in the order of their tasks, whichever is done first."""
    assert run_parallel(lambda n: n * n, range(200)) == [n * n for n in range(200)]
    assert run_parallel(lambda n: n, []) == []


def test_little_work_stays_in_this_thread() -> None:
    """One task, or tasks that are not worth it, wake no other thread."""
    mine = threading.current_thread().name
    assert run_parallel(name_thread, [1]) == [mine]
    assert run_parallel(name_thread, range(5), worth=False) == [mine] * 5


@pytest.mark.skipif(count_cores() == 1, reason="the machine has one core")
def test_much_work_goes_to_others() -> None:
    """Several tasks are done by the threads of the pool."""
    assert all(name.startswith(POOL) for name in run_parallel(name_thread, range(20)))


def test_one_core_needs_no_pool() -> None:
    """A thread that may use one core does its tasks by itself."""
    cores = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(cores)})
        assert count_cores() == 1
        assert run_parallel(name_thread, range(3)) == [threading.current_thread().name] * 3
    finally:
        os.sched_setaffinity(0, cores)


def test_tasks_may_have_tasks() -> None:
    """Tasks that have tasks of their own do these themselves: more of them than threads do not wait for each other."""
    found = run_parallel(lambda n: sum(run_parallel(lambda m: n * m, range(10))), range(50))
    assert found == [45 * n for n in range(50)]


def test_faults_come_through() -> None:
    """What a task raises is raised where the results were asked for, and the pool goes on."""
    with pytest.raises(ZeroDivisionError):
        run_parallel(lambda n: 1 // n, [1, 0, 2])
    assert run_parallel(lambda n: n, [1, 2]) == [1, 2]


def test_several_threads_share_the_pool() -> None:
    """Requests that train at the same time get their own results."""
    found: dict[int, list[int]] = {}

    def work(number: int) -> None:
        found[number] = run_parallel(lambda n: n * number, range(100))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == {number: [n * number for n in range(100)] for number in range(8)}


def test_a_fork_has_its_own_pool() -> None:
    """A worker forked after the pool was opened does not wait for threads that it does not have."""
    script = (
        "import os, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "from service.core.parallel import run_parallel\n"
        "run_parallel(abs, [1, 2])\n"
        "child = os.fork()\n"
        "if not child: os._exit(run_parallel(abs, [-3, -4]) != [3, 4])\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=30, check=False).returncode == 0
