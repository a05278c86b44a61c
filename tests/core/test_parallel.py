"""Threads: results in order whatever they do, errors raised, nothing left running."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from hopefear.core.parallel import n_ahead, parallel


def test_work_ahead_is_bounded_in_order_and_ends_with_its_reader() -> None:
    taken, used = 0, 0

    def items() -> Iterator[int]:
        nonlocal taken
        for i in range(50):
            assert i <= used + n_ahead(3)
            taken += 1
            yield i

    def work(i: int) -> int:
        time.sleep(0.002 * (i % 3))
        return i

    for expected, i in enumerate(parallel(items(), work, 3)):
        assert i == expected
        used = i + 1
    assert taken == 50
    results = parallel(iter(range(50)), work, 3)
    assert next(results) == 0
    results.close()


def test_who_would_wait_works_too() -> None:
    here, came = threading.get_ident(), threading.Event()

    def work(fails: bool) -> bool:
        asking = threading.get_ident() == here
        if asking:
            came.set()
            if fails:
                raise ValueError("of the asking thread")
        assert came.wait(60)
        return asking

    assert any(parallel(iter([False] * 4), work, 2))
    came.clear()
    with pytest.raises(ValueError, match="of the asking thread"):
        list(parallel(iter([True] * 4), work, 2))


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(n_jobs):
    for n in (0, 1, 7):
        assert list(parallel(range(n), lambda k: k * k, n_jobs)) == [k * k for k in range(n)]


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_an_error_is_raised_in_its_place_when_nothing_runs_any_more(n_jobs, bad):
    running, seen = set(), []

    def work(k):
        running.add(k)
        time.sleep(0.01)
        running.discard(k)
        if k == bad:
            raise ValueError(k)
        return k

    with pytest.raises(ValueError, match=str(bad)):
        seen.extend(parallel(range(9), work, n_jobs))
    assert not running
    assert list(parallel([3], str, n_jobs)) == ["3"]


def test_an_error_of_the_items_comes_behind_the_results_before_it():
    def items():
        yield from range(3)
        raise ValueError("of the items")

    results = parallel(items(), str, 2)
    assert [next(results) for _ in range(3)] == ["0", "1", "2"]
    with pytest.raises(ValueError, match="of the items"):
        next(results)


def test_an_interrupt_ends_the_work():
    done = []

    def work(k):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        time.sleep(0.02)
        done.append(k)

    with pytest.raises(KeyboardInterrupt):
        list(parallel(range(1000), work, 3))
    count = len(done)
    time.sleep(0.1)
    assert len(done) == count < 1000


def test_threads_work_at_the_same_time_and_no_more_than_were_asked_for():
    meeting, lock, busy, most = threading.Barrier(3, timeout=30), threading.Lock(), 0, 0

    def work(k):
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        if k < 3:
            meeting.wait()
        time.sleep(0.001)
        with lock:
            busy -= 1

    list(parallel(range(20), work, 3))
    assert most == 3


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_calls_inside_of_calls_and_after_a_fork_go_on():
    def table(n):
        return list(parallel(range(n), lambda k: n * k, 3))

    expected = [[n * k for k in range(n)] for n in range(6)]
    assert list(parallel(range(6), table, 3)) == expected
    if hasattr(os, "fork"):
        child = os.fork()
        if child == 0:
            os._exit(list(parallel(range(6), table, 3)) != expected)
        assert os.waitpid(child, 0)[1] == 0


def test_work_has_the_context_of_its_caller():
    with np.errstate(over="raise"):
        ways = list(parallel(range(9), lambda _: (time.sleep(0.002), np.geterr()["over"])[1], 3))
    assert ways == ["raise"] * 9
