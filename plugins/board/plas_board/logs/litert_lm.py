"""LiteRT-LM: turns of the `BenchmarkInfo` that litert_lm_main prints, and the rates of `litert-lm benchmark`.

A turn that decodes N tokens is N steps: its prefill samples nothing. Turns come in pairs, and each follows those before it.
Source: google-ai-edge/LiteRT-LM runtime/engine/io_types.cc, python/litert_lm_cli/commands/benchmark.py; samples in its issues 1396
and 2568.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from plas_board.calibrate.figure import Cells, Document, Figure, cells_of, filled, named, positive, refuse

NAME = "LiteRT-LM"
TURN = re.compile(r"^\s*(Prefill|Decode) Turn \d{1,6}: Processed (\d{1,9}) tokens in ")
SPEED = re.compile(r"^\s*(Prefill|Decode) (?:Speed|speed): +(\d{1,12}\.\d{1,6}) tokens/s(ec\.)?")
BLOCK = re.compile(r"^BenchmarkInfo:\s*$", re.MULTILINE)
COUNT = re.compile(r"^Number of tokens in (prefill|decode) ?: (\d{1,9})")
SETTING = re.compile(r"^(Backend|Max number of tokens|Speculative decoding) *: (\w{1,20})")
FLAG = re.compile(r"--(backend|max_num_tokens)[ =](\w{1,20})")
MODEL = re.compile(r"([\w.-]{1,150})\.litertlm\b")
NAMES = {"backend": "Backend", "max_num_tokens": "Max number of tokens"}


@dataclass
class Seen:
    """What a log said until here: model, settings, tokens of the phases, and those that earlier turns left in the cache."""

    model: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    turns: dict[str, list[int]] = field(default_factory=dict)

    def see(self, line: str) -> None:
        """Take from a line what it says."""
        if (".litertlm" in line) and (file := MODEL.search(line)):
            self.model, self.settings = file[1], {}
        self.settings |= {NAMES[name]: value for name, value in FLAG.findall(line)}
        if count := COUNT.match(line):
            self.tokens[count[1].capitalize()] = int(count[2])
        elif setting := SETTING.match(line):
            self.settings[setting[1]] = setting[2]
        elif BLOCK.match(line):
            self.turns = {"Prefill": [], "Decode": []}
        elif turn := TURN.match(line):
            self.turns.setdefault(turn[1], []).append(int(turn[2]))

    @property
    def engine(self) -> str:
        """Program, backend, size of the cache (which its steps read whole), drafts where they may have run."""
        cache, drafts = self.settings.get("Max number of tokens", ""), self.settings.get("Speculative decoding", "")
        extra = [f"cache of {cache} tokens"] * bool(cache) + ["drafts auto"] * (drafts == "auto")
        return ", ".join([f"{NAME} {self.settings.get('Backend', '')}".strip(), *extra])


def recognises(document: Document) -> bool:
    """A block of turns, or the rates below the settings of a benchmark."""
    lines = document.text.splitlines()
    return BLOCK.search(document.text) is not None or (any(map(COUNT.match, lines)) and any(map(SPEED.match, lines)))


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """A figure of every rate."""
    for document in documents:
        seen = Seen()
        for line in document.text.splitlines():
            seen.see(line)
            if speed := SPEED.match(line):
                base = Figure(named(seen.model), {"engine": seen.engine, "precision": ""})
                yield filled(base, _measured, seen, speed[1], speed[2], of_turn=bool(speed[3]))


def _measured(seen: Seen, phase: str, speed: str, *, of_turn: bool) -> Cells:
    settings = (seen.tokens.get(name, 0) for name in ("Prefill", "Decode"))
    before, prompt, output = _lengths(seen, phase) if of_turn else (0, *settings)
    refuse((not prompt, "tokens of the prompt are not stated"))
    rate = positive(speed, f"{phase} speed")
    if phase == "Prefill":
        return cells_of("prefill_tok_s", rate, prompt)
    drafted = seen.settings.get("Speculative decoding") == "true"
    refuse((not output, "no tokens were generated"), (drafted, "speculative decoding: several tokens a step"))
    return cells_of("decode_tok_s", rate, before + prompt, output)


def _lengths(seen: Seen, phase: str) -> tuple[int, int, int]:
    """Tokens in the cache before the turn that was read last, of its prompt, and of its output (of decoding).

    Raises:
        Unusable: prefills and decodings that are not in pairs.
    """
    prompts, outputs = seen.turns.get("Prefill", []), seen.turns.get("Decode", [])
    if phase == "Decode":
        refuse((not outputs, "tokens of the output are not stated"))
        refuse((len(outputs) > len(prompts), "a decoding without its prompt"))
        n = len(outputs)
        return sum(prompts[: n - 1]) + sum(outputs[: n - 1]), prompts[n - 1], outputs[n - 1]
    refuse((not prompts, "tokens of the prompt are not stated"))
    refuse((len(prompts) > 1, "a prompt after earlier turns, of whose outputs nothing is said yet"))
    return 0, prompts[0], 0
