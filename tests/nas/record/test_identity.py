"""Whatever a study has a key for must agree when a run goes on, unless its field says otherwise."""

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import Field

from nas import load_study
from nas.record import identity
from nas.record.identity import at_start, difference, fingerprints, free, needed
from nas.study.configuration import StudyConfig
from nas.study.expensive_settings import MeasureSettings, TrainSettings
from nas.study.value_parsers import FREE

MAY_DIFFER = {  # written out, so that a key that is made free is made so on purpose
    *("name", "evaluations", "time_limit", "stop_when_stable", "workers", "resources", "evaluation_timeout"),
    *("executor", "auto", "only"),  # only: the space that a run records is narrowed already
}


class LaterConfig(StudyConfig):
    """A study of a later version, with a key that decides and nobody marked, and one that is free."""

    made_up: Annotated[int, Field(description="Something that decides")] = 1
    made_free: Annotated[int, Field(description="Something that does not"), FREE] = 1


@pytest.fixture
def recorded() -> dict[str, Any]:
    """A resolved study."""
    return load_study(algo="random").assembled.resolved()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """That version."""
    with monkeypatch.context() as patched:
        patched.setattr(identity, "StudyConfig", LaterConfig)
        cleared()
        yield
    cleared()


def cleared() -> None:
    """Nothing known of any version."""
    identity._marks.cache_clear()
    identity._defaults.cache_clear()


def test_only_these_keys_may_differ() -> None:
    assert set(free()) == MAY_DIFFER
    assert set(at_start()) == {"known", "known_as", "default_budget", "device_columns"}
    assert set(free()) - set(free(recorded=True)) == {"executor"}  # a cluster is named on the command line alone


@pytest.mark.parametrize("key", StudyConfig.model_fields)
def test_a_key_that_differs_is_refused_or_marked(key: str, recorded: dict[str, Any]) -> None:
    changed = {**recorded, key: {"made": "up"}}
    found = difference(recorded, changed)
    if key in (*free(), *at_start()):
        assert found is None
        assert fingerprints(recorded) == fingerprints(changed)
    else:
        assert key in (found or ""), found
        assert fingerprints(recorded) != fingerprints(changed)


@pytest.mark.parametrize("key", sorted({*StudyConfig.model_fields} - {*needed(), *free(), *at_start()}))
def test_a_run_of_an_earlier_version_goes_on(key: str, recorded: dict[str, Any]) -> None:
    default = StudyConfig().model_dump(mode="json")[key]
    whole = {**recorded, key: "none" if default is None else default}
    assert difference({name: value for name, value in whole.items() if name != key}, whole) is None


@pytest.mark.parametrize("key", ["train", "measure"])
def test_where_texts_and_programs_lie_may_differ(key: str, recorded: dict[str, Any]) -> None:
    train = TrainSettings(data=["a"], tokens=1e6).model_dump(mode="json")
    settings = {"train": train, "measure": MeasureSettings().model_dump(mode="json")}[key]
    before = {**recorded, key: settings}
    moved = {"train": "data", "measure": "interpreter"}[key]
    assert difference(before, {**before, key: {**settings, moved: ["elsewhere"]}}) is None
    assert f"objectives.{key}.seed" in (difference(before, {**before, key: {**settings, "seed": 7}}) or "")
    without = {name: value for name, value in settings.items() if name != "seed"}
    assert difference({**before, key: without}, before) is None


@pytest.mark.usefixtures("later")
def test_a_made_up_key_is_kept_to_without_a_mark(recorded: dict[str, Any]) -> None:
    assert difference(recorded, {**recorded, "made_up": 1, "made_free": 5}) is None
    assert difference({**recorded, "made_up": 2}, {**recorded, "made_up": 3}) == (
        "scenario.made_up: 2 in the run, 3 now"
    )
    assert difference(recorded, {**recorded, "made_up": 2}) == "scenario.made_up: 1 in the run, 2 now"
    assert "made_up" not in needed()
    assert free(recorded=True)[-1] == "made_free"
