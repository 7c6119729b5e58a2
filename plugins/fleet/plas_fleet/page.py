"""The page of a fleet: what each further model buys, who is served by what, the models."""

from collections.abc import Mapping
from typing import Any

from nas.answer.design_words import describe
from nas.pages.page import configuration, element, footer, image, page, paragraphs, section, table, text
from objectives.display_text import in_a_command
from plas_fleet.answers import Described, FleetAnswer, fullest
from plas_fleet.text import (
    head,
    held_by,
    lost,
    percent,
    reading,
    training_in_words,
    value_header,
    value_rows,
    weight_in_words,
)


def fleet_page(name: str, answer: FleetAnswer, resolved: Mapping[str, Any]) -> str:
    """A fleet as one HTML file; nothing on it depends on the clock.

    Raises:
        PlasError: no BokehJS in this environment.
    """
    parts = [_answer(answer), *(_fleet(answer, each) for each in reversed(answer.described))]
    main = element("main", *parts, _repeat(name, resolved), id="main")
    body = element("header", element("h1", text(name)), paragraphs(list(head(answer)), "quiet")) + main + footer()
    return page(name, body, {"metrics": []}, ())


def _answer(answer: FleetAnswer) -> str:
    """The summary: a row per number of models, the picture of both."""
    from plas_fleet.pictures import pngs

    shown = [image(content, alt) for alt, content in pngs(answer).items()] if answer.described else []
    rows = value_rows(answer)
    return section(
        "What each further model buys",
        paragraphs([*lost(answer), *reading(answer)]),
        table(value_header(answer.fleets), rows) if rows else "",
        *shown,
    )


def _fleet(answer: FleetAnswer, each: Described) -> str:
    """One fleet: its models, then its cases."""
    return section(
        f"Fleet of {len(each.models)}",
        element("h3", "Its models"),
        table(("model", "architecture", "loss", "cases", "training", "binds"), _models(answer, each)),
        element("h3", "Who is served by what"),
        table(
            ("case", "weight", "model", "loss (nats)", "over own best (nats)", "fullest limit"), _cases(answer, each)
        ),
    )


def _models(answer: FleetAnswer, each: Described) -> list[tuple[str, ...]]:
    designs = answer.architectures([model.key for model in each.models])
    settings, law = answer.fleets.problem.space.settings, answer.fleets.problem.scenario.law
    rows: list[tuple[str, ...]] = []
    for place, model in enumerate(each.models):
        design = designs[place : place + 1]
        star = "*" if law.extrapolates(design)[0] else ""
        rows.append(
            (
                answer.names[model.key],
                describe(design, settings),
                f"{model.loss:.4f}{star}",
                str(len(model.cases)),
                training_in_words(model.training),
                held_by(answer.fleets, model),
            )
        )
    return rows


def _cases(answer: FleetAnswer, each: Described) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for number, case in enumerate(answer.fleets.cases):
        place = int(each.fleet.serves[number])
        metric, share = fullest(each.models[place], number)
        loss, regret = f"{each.fleet.loss[number]:.4f}", f"{each.regret[number]:.4f}"
        full = f"{metric} {percent(share)}" if metric else "none"
        rows.append((case.label, weight_in_words(case.weight), answer.name(each, number), loss, regret, full))
    return rows


def _repeat(name: str, resolved: Mapping[str, Any]) -> str:
    """The command that repeats the fleet, and its configuration."""
    return section("Repeat it", element("pre", text(f"plas fleet {in_a_command(name)}")), configuration(resolved))
