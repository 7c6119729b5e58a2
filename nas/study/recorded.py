"""What a run records of a key that takes more than a line, as plain content without a path; `study` is an assembled one."""

from typing import Any

from nas.problem.objective import Baseline
from nas.study.serving_keys import FIGURES
from objectives.profile_choice import OF_DEVICE
from objectives.scenario import Scenario
from search_spaces.columns import OF_SERVING, SHAPE, worded


def curve(study: Any) -> Any:
    """The curve of bytes per token, embedded where something depends on it; else as it was named."""
    text = study.problem.scenario.text
    if text is None or not (text.of_requests or study.problem.of_text):
        return study.config.token_curve
    return text.curve.model_dump(mode="json")


def serving(study: Any) -> dict[str, Any]:
    """The keys of serving with the draft model and the chip that reads prompts embedded, without what the space holds."""
    given, served, axes = (
        study.config.serving.model_dump(mode="json"),
        study.problem.scenario.serving,
        study.problem.space.settings,
    )
    draft = None if served.draft is None else Baseline("draft", served.draft).mapping()
    reader = None if served.prompts is None else served.prompts.device.mapping()
    words: dict[str, list[str]] = {name: [] for name in OF_SERVING if name in axes}
    used: dict[str, Any] = {}
    if served.speculation != "none" or "speculation" in axes:
        acceptance = {kind: each.written() for kind, each in served.acceptance.items()}
        used = {"acceptance": acceptance, **{name: getattr(served, name) for name in FIGURES}}
    link = given["phases"]["link"] and f"{given['phases']['link']!r} B/s"
    profile = served.prompts and calibration(study, served.prompts)
    phases = {"prefill": reader, "link": link, "calibration": "datasheet" if profile == "none" else profile}
    return {**given, **used, **words, "draft": draft, "phases": phases}


def calibration(study: Any, scenario: Scenario) -> Any:
    """A scenario's profile; where designs have formats or devices of their own the word for those of the device, recorded too."""
    if (scenario.formats or scenario.devices) and study.config.calibration in OF_DEVICE:
        return study.config.calibration
    profile = scenario.calibration
    return "none" if profile is None else profile.model_dump(mode="json", exclude_none=True)


def start_rows(study: Any) -> list[dict[str, Any]]:
    """The designs that the strategy starts from, a row each."""
    space = study.problem.space
    designs, names = space.architectures(study.start), (*SHAPE, *space.mixes.names)
    columns = (worded(name, getattr(designs, name)).tolist() for name in names)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
