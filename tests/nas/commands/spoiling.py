"""Content and text spoilt at random places, every draw from the generator given: for generated cases here and in the packages' tests."""

import random
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Spoiler:
    """What stands in for values and keys: texts, numbers, special values, names of keys."""

    texts: Sequence[Any]
    numbers: Sequence[Any]
    special: Sequence[Any]
    keys: Sequence[str]

    def junk(self, rng: random.Random) -> Any:
        """A value that hardly anything expects."""
        drawn = [rng.choice(self.texts), rng.choice(self.numbers), rng.choice(self.special), rng.uniform(-10, 1e4)]
        return deepcopy(rng.choice(drawn))

    def spoilt(self, content: Any, rng: random.Random, times: int) -> Any:
        """Content with values replaced, keys removed, renamed or added at random places."""
        content = deepcopy(content)
        for _ in range(times):
            known = places(content)
            if not known:
                break
            *outer, key = rng.choice(known)
            target = content
            for part in outer:
                target = target[part]
            match rng.randrange(5):
                case 0 if isinstance(target, dict):
                    del target[key]
                case 1 if isinstance(target, dict):
                    target[rng.choice(self.keys)] = target[key]
                case 2 if isinstance(target, list):
                    target.append(self.junk(rng))
                case _:
                    target[key] = self.junk(rng)
        return content


def places(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside nested content."""
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [found for key, value in inner for found in [(*path, key), *places(value, (*path, key))]]


def garbled(text: str, rng: random.Random) -> str:
    """Text with a few characters lost or put in."""
    for _ in range(rng.choice([0, 0, 0, 1, 3])):
        at = rng.randrange(len(text) + 1)
        added = rng.choice(["", "[", "]", '"', ":", "&a ", "*a", "\t", "- ", "!!x ", "%", "\n"])
        text = text[:at] + added + text[at + rng.randrange(2) :]
    return text
