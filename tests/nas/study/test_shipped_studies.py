"""Every study that ships loads, finds something in a few evaluations, and answers within what its loss law was fitted on."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from nas.answer.design_words import describe
from nas.commands.list import application_studies
from nas.commands.requests import RunRequest
from nas.commands.run import execute
from nas.files import yaml_source
from nas.problem.picks import answers
from nas.problem.uncertainty import not_told_apart, not_told_apart_from
from nas.search.assembly import assemble, under_preset
from nas.study.catalogue import device_faults, load_device
from nas.study.layers import OTHERS, layered
from objectives.loss_law.law import Law
from objectives.plugins import documents, packaged
from objectives.transfers import takes_as_measured
from search_spaces.specification import SHIPPED, SpaceSpecification

ROOT = Path(__file__).resolve().parents[3]
SINGLE = [name for name, path in documents("configs").items() if not OTHERS.keys() & yaml_source.read(path)[0].keys()]
FAST = ("paper", "phone_keyboard", "robot_int8")  # of the others' whole spaces the tests below say as much
applications = pytest.mark.parametrize("name", application_studies())


@pytest.mark.parametrize(
    ("model", "package", "name"),
    [
        pytest.param(model, package, name, id=name)
        for model, package in ((Law, "objectives.laws"), (SpaceSpecification, "search_spaces.spaces"))
        for name in documents(package)
    ],
)
def test_shipped_laws_and_spaces_have_no_faults(model: type[BaseModel], package: str, name: str) -> None:
    """They are read unchecked; here they are checked as a user's own."""
    content = packaged(package, name)
    assert model.model_validate(content) == model.model_validate(content, context=SHIPPED)


@pytest.mark.parametrize("name", documents("objectives.devices"))
def test_shipped_devices_have_no_faults(name: str) -> None:
    assert not [*device_faults(load_device(name), embedded=False)]


def test_the_eight_applications_ship() -> None:
    assert application_studies() == [
        "autonomous_driving",
        "batch8_server",
        "embodied_ai",
        "long_context_assistant",
        "phone_keyboard",
        "private_serving",
        "smart_home",
        "wearable",
    ]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in SINGLE]
)
def test_a_shipped_study_finds_something_in_few_evaluations(name: str, tmp_path: Path) -> None:
    folder = execute(RunRequest({"evaluations": 300}, config=name, out=tmp_path / "run", quiet=True, pictures=False))
    assert len((folder / "frontier.csv").read_text().splitlines()) > 1


@pytest.mark.slow
@applications
def test_an_application_s_answer_is_no_extrapolation_and_every_question_has_one(name: str) -> None:
    study = assemble(*layered({}, (), name))
    problem = study.problem
    everything = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    assert everything.feasible.any()
    own = [pick.answer.genotypes for pick in answers(problem, everything) if pick.answer and not pick.question.baseline]
    assert not problem.scenario.law.extrapolates(problem.architectures(np.concatenate(own))).any()
    everything = replace(everything, budgets=problem.limits)  # whether or not trainings cover a design
    assert not everything.feasible.all()  # the budgets say something
    for label, limits in (study.config.applications or {}).items():
        within = everything.feasible.copy()
        for metric, limit in limits.items():
            within &= everything.metrics[metric] <= limit
        assert 0 < within.sum() < everything.feasible.sum(), label


@applications
def test_an_application_is_named_after_its_file_and_counts_a_real_device(name: str) -> None:
    study = assemble(*layered({}, (), name))
    assert study.config.name == name
    assert study.config.preset == "device"
    assert study.problem.has_head
    profile = study.problem.scenario.calibration
    assert profile is not None
    if not profile.typical:
        assert takes_as_measured(profile, study.config.precision)
        assert profile.batch == study.config.batch


@pytest.mark.slow
@applications
def test_the_documentation_shows_what_each_finds(name: str) -> None:
    problem = assemble(*layered({}, (), name)).problem
    everything = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    best = answers(problem, everything)[0].answer
    assert best is not None
    described = describe(problem.architectures(best.genotypes), problem.space.settings)
    tied = not_told_apart_from(problem, best, everything)
    assert tied is not None
    feasible = everything[everything.feasible & (everything.keys != best.keys[0])]
    designs, own = problem.architectures(feasible.genotypes), problem.architectures(best.genotypes)
    same = not_told_apart(problem.scenario.law, designs, own)
    assert tied.number == same.sum()
    depths = np.append(designs.depth[same], own.depth)
    found = f"{best.metrics['loss'][0]:.4f} | {described} | {best.metrics['memory_gb'][0]:.3g} GB"
    row = f"| `{name}` | {found} | {tied.number:,}: depth {depths.min()} to {depths.max()} |"
    assert row in (ROOT / "docs" / "applications.md").read_text()


def test_a_study_s_own_head_is_counted_on_the_device_too() -> None:
    assert under_preset(assemble(*layered({"vocabulary": 32_000}, (), None)), "device").vocabulary == 32_000
    assert under_preset(assemble(*layered({}, (), None)), "device").vocabulary == 151_936
