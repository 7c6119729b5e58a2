"""The page of a fleet: what each further model buys, who is served by what, the models."""

from collections.abc import Mapping
from typing import Any

from nas.pages.page import configuration, element, footer, page, paragraphs, section, section_html, text
from objectives.display_text import in_a_command
from plas_fleet.answers import FleetAnswer
from plas_fleet.fleet_document import fleet_section, opening_lines, sure_section, value_section


def fleet_page(name: str, answer: FleetAnswer, resolved: Mapping[str, Any]) -> str:
    """A fleet as one HTML file; nothing on it depends on the clock.

    Raises:
        PlasError: no BokehJS in this environment.
    """
    sections = []
    if answer.described:
        fleets = (fleet_section(answer, each) for each in reversed(answer.described))
        sections = [value_section(answer), *fleets, sure_section(answer)]
    repeat = element("pre", text(f"plas fleet {in_a_command(name)}")), configuration(resolved)
    main = element("main", *map(section_html, sections), section("Repeat it", *repeat), id="main")
    body = element("header", element("h1", text(name)), paragraphs(opening_lines(answer), "quiet")) + main + footer()
    return page(name, body, {"metrics": []}, ())
