"""What SIGTERM does while a search lasts."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from nas.search.lifecycle import terminable


@pytest.fixture(autouse=True)
def unhandled() -> Iterator[None]:
    """SIGTERM without a handler, and afterwards with that of before."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def terminated() -> None:
    """This process gets SIGTERM, which must have a handler by now."""
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0)


def test_sigterm_ends_a_search_as_ctrl_c_does_and_is_given_back() -> None:
    with pytest.raises(KeyboardInterrupt), terminable():
        terminated()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_program_that_knows_what_sigterm_does_keeps_its_say() -> None:
    said = []
    signal.signal(signal.SIGTERM, lambda *_: said.append("ours"))
    handler = signal.getsignal(signal.SIGTERM)
    with terminable():
        terminated()
        said.append("went on")
    assert said == ["ours", "went on"]
    assert signal.getsignal(signal.SIGTERM) is handler
