"""A calibration on the terminal."""

from collections.abc import Mapping
from typing import Any

from nas.calibrate import calibration_text as text
from nas.terminal.console import say
from nas.terminal.console import write as write_lines
from nas.terminal.tables import fitted, say_dropped, table


def show(content: Mapping[str, Any]) -> None:
    """Groups with their errors, and the rows that were not used."""
    say(text.head(content))
    for line in text.described(content):
        say(f"  {line}")
    if len(content["groups"]) > 1:
        table(text.SUMMARY, text.summary(content))
    for line in text.left_out(content):
        say(f"  {line}")
    dropped: list[str] = []
    for group in content["groups"]:
        say()
        say(text.group_head(group))
        say(f"  {text.rates(group['profile'])}")
        if apart := text.apart(group["profile"]):
            say(f"  {apart}")
        lines, dropped = fitted(text.HEADER, text.phase_rows(group), spare=("in-sample",))
        write_lines(lines)
        for line in text.remarks(group):
            say(f"  {line}")
    for served in content["served"]:
        say()
        say(text.served_head(served))
        say(f"  {text.served_value(served, content['slow_bandwidth'])}")
        table(text.SERVED_HEADER, [text.served_row(served)])
        for line in served["remarks"]:
            say(f"  {line}")
    for energy in content["energy"]:
        say()
        say(text.energy_head(energy))
        say(f"  {text.joules(energy['coefficients'])}")
        table(text.ENERGY_HEADER, [text.energy_row(energy)])
        for line in energy["remarks"]:
            say(f"  {line}")
    say_dropped(dropped)
