"""Signals: the first one ends, unless what is under way defers it; the second one always does."""

import os
import signal

import pytest

from axonnx.base.progress import EndedError, deferred, requested, signals_handled

SOME = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SOME)
def test_a_signal_raises_and_is_forgotten_outside(number):
    before = signal.getsignal(number)
    with signals_handled():
        with pytest.raises(EndedError, match=number.name):
            send(number)
        assert requested() == number
    assert (requested(), signal.getsignal(number)) == (0, before)


def test_a_deferred_signal_waits_and_the_second_does_not():
    with signals_handled():
        with deferred():
            assert requested() == 0
            send(signal.SIGTERM)
            assert requested() == signal.SIGTERM
            with pytest.raises(EndedError):
                send(signal.SIGTERM)
        with pytest.raises(EndedError):
            send(signal.SIGINT)


def test_what_the_caller_ignores_stays_ignored():
    """As nohup does with SIGHUP."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_handled():
            send(signal.SIGHUP)
            assert requested() == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_in_an_inner_block_is_known_outside():
    with signals_handled():
        with signals_handled(), pytest.raises(EndedError):
            send(signal.SIGTERM)
        assert requested() == signal.SIGTERM
    assert requested() == 0
