"""Signals as flags and as exceptions: blocks inside each other, and a second signal at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from hopefear.core.interrupts import Interrupted, interruptible

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def handlers_are_put_back() -> Iterator[None]:
    """Python's own handlers, which a process in the background may not have, before and after."""
    own = (signal.default_int_handler, signal.SIG_DFL)
    given = [signal.signal(*pair) for pair in zip(SIGNALS, own, strict=True)]
    yield
    assert tuple(signal.getsignal(number) for number in SIGNALS) == own
    for number, handler in zip(SIGNALS, given, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("signum", SIGNALS)
def test_a_signal_sets_the_flags_of_all_blocks_around(signum: int) -> None:
    with interruptible() as outer:
        with interruptible() as inner:
            assert not inner
            signal.raise_signal(signum)
            assert inner.signum == outer.signum == signum
        assert outer
    with interruptible() as later:
        assert not later


def twice(signum: int, at_once: bool) -> None:
    with interruptible(at_once=at_once), interruptible() as interruption:
        signal.raise_signal(signum)
        assert interruption
        signal.raise_signal(signum)


def test_a_second_signal_acts_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        twice(signal.SIGINT, False)


def test_a_flag_comes_before_an_exception_around_it() -> None:
    with pytest.raises(Interrupted) as stop:
        twice(signal.SIGTERM, True)
    assert stop.value.signum == signal.SIGTERM


def test_only_the_signals_asked_for_are_taken() -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        interruptible(at_once=True, signals=(signal.SIGTERM,)),
    ):
        signal.raise_signal(signal.SIGINT)


def test_other_threads_get_no_signals() -> None:
    flags = []

    def work() -> None:
        with interruptible(at_once=True) as interruption:
            flags.append(bool(interruption))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert flags == [False]
