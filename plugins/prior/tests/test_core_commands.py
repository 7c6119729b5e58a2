"""What the core's tests ask of every strategy, as commands: killed, resumed, repeated, on axes of all kinds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core_tests import loaded

ALGO = "prior_guided"
kills, many = loaded("nas/commands/test_interruption.py"), loaded("nas/commands/test_many.py")
slow, reference = kills.slow, kills.reference
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["free_heads", "tokens", "formats", "layers_space"])
def test_it_searches_every_kind_of_axis_to_the_same_bytes_again(
    kind: str, inside: Callable[..., Any], tmp_path: Path
) -> None:
    core = loaded(f"nas/commands/test_{kind}.py")
    (tmp_path / "space.yaml").write_text(core.SPACE)
    (test,) = (value for name, value in vars(core).items() if name.endswith("_to_the_same_bytes_again"))
    test(ALGO, inside)


def test_its_own_config_and_kills_at_random_moments_end_in_the_same_bytes(
    slow: Any, reference: Callable[..., Any], succeeded: Callable[..., Any]
) -> None:
    kills.test_its_own_config_and_kills_at_random_moments_end_in_the_same_bytes(ALGO, 2, slow, reference, succeeded)


def test_nine_hundred_settings(inside: Callable[..., Any]) -> None:
    many.test_nine_hundred_settings(ALGO, inside)
