"""Teams of threads: results in order, errors raised, nobody waits for another's property."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest

from hopefear.core.threads import Team, once


@pytest.mark.parametrize("size", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(size):
    with Team(size) as team:
        for n in (0, 1, 7):
            assert team.run(partial(pow, k, 2) for k in range(n)) == [k * k for k in range(n)]


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_errors_are_raised_when_all_have_stopped(size, bad):
    running = set()

    def task(k):
        running.add(k)
        time.sleep(0.01)
        running.discard(k)
        if k == bad:
            raise ValueError(k)

    with Team(size) as team:
        with pytest.raises(ValueError, match=str(bad)):
            team.run(partial(task, k) for k in range(4))
        assert not running
        assert team.run([lambda: 3]) == [3]


def test_threads_work_at_the_same_time():
    meeting = threading.Barrier(2, timeout=10)

    class Thing:
        @once
        def met(self):
            return meeting.wait() in (0, 1)

    with Team(2) as team:
        assert team.run([lambda: Thing().met] * 2) == [True, True]
