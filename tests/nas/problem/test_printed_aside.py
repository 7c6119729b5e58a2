"""What is printed inside goes to the standard error; a thread that outlives its caller leaves the output alone."""

import sys
from threading import Event, Thread

import pytest

from nas.problem.problem import printed_aside


def test_what_is_printed_inside_is_beside_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with printed_aside():
        sys.stdout.write("inside\n")
    sys.stdout.write("outside\n")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("outside\n", "inside\n")


def test_another_thread_leaves_the_output_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, ended = Event(), Event()

    def late() -> None:
        with printed_aside():
            entered.set()
            ended.wait(10)

    thread, output = Thread(target=late), sys.stdout
    thread.start()
    entered.wait(10)
    assert sys.stdout is output
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)  # as the next command's
    ended.set()
    thread.join()
    assert sys.stdout is sys.__stdout__
