"""The parser's refusal as one line in our form of errors."""

import re
from difflib import SequenceMatcher
from os import R_OK, access
from os.path import isdir, isfile
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nas.files.faults import CHOOSE, meant, nearest, other_words, plain, squashed, unknown
from nas.terminal.flags import Settings, study_keys
from objectives import outside
from objectives.display_text import in_a_command
from objectives.plausible import device_called
from objectives.plugins import documents
from objectives.published_models import model_ids
from search_spaces.formats import FORMATS

CHOICE = re.compile(r"is not one of (.*?)\.?$", re.DOTALL)
#: `5,000`, `1e4`, `1.5k`; not `5,5`, of which nobody knows what it means.
COUNT = re.compile(r"(\d{1,3}(?:[,_]\d{3})+|\d+(?:\.\d{1,2})?)(?:e\+?(\d{1,2}))?\s*([km]?)", re.IGNORECASE)
SECONDS = re.compile(r"(\d+(?:\.\d+)?)()\s*(s)")
DEVICES = "objectives.devices"
UNITS = {"": 1.0, "s": 1.0, "k": 1e3, "m": 1e6}
EXTRA = re.compile(r"unexpected extra arguments?(?:\(s\))? \((.*)\)")


def usage_line(error: Any, program: str) -> str:
    """`--rows: expected an integer, got 'x'; correct it` for an exception of the parser."""
    kind, message = type(error).__name__, str(getattr(error, "message", "") or "")
    option = getattr(error, "option_name", None) or _name(getattr(error, "param", None))
    if kind == "NoSuchOption":
        near, form = nearest(str(option), _options(error)), _form_of(str(option), _options(error))
        hint = f"write {form}" if form else f"see {program} --help" if near == CHOOSE else near
        return f"{option}: expected an option of {program}, got none of them; {hint}"
    if kind == "MissingParameter":
        return f"{option}: expected a value, got nothing; see {program} --help"
    if kind == "BadOptionUsage":
        wanted = "no value, got one; drop it" if "not take" in message else "a value, got nothing; add it"
        return f"{option}: expected {wanted}"
    if extra := EXTRA.search(message):
        return f"{program}: expected no further words, got {extra[1]!r}; {_with_a_flag(extra[1], _options(error))}see {program} --help"
    return f"{option or program}: {_refused(error, message)}"


def _form_of(option: str, options: list[str]) -> str:
    """What an option of other tools, or a key of the study, is written as in a command with these options; "" if nothing, or several."""
    key, written = option.lstrip("-").replace("-", "_"), other_words("flags").get(option, "")
    if written.partition(" ")[0] in options:
        return written
    if (name := meant(option, options)) != option:
        return name
    return f"{Settings.name} {key}=VALUE" if Settings.name in options and key in study_keys() else ""


def rewritten(error: Any, words: list[str]) -> list[str]:
    """The words of a command with the one that was refused as it is written here; none where that means nothing, or several things."""
    option, cause = str(getattr(error, "option_name", None) or ""), error.__cause__
    detail: Any = cause.errors()[0] if isinstance(cause, ValidationError) else {"msg": "", "input": "", "type": ""}
    chosen, word = CHOICE.search(detail["msg"]), str(detail["input"])
    parts = (each.split("=", 1) if each.startswith("--") else [each] for each in words)
    words = [part for each in parts for part in (each if {option, word} & {*each} else ["=".join(each)])]
    if option in words:
        form, at = _form_of(option, _options(error)), words.index(option)
        value = words[at + 1] if "VALUE" in form and words[at + 1 :] else ""
        new = form.replace("VALUE", value).split(" ", 1) if form else []
        return [*words[:at], *new, *words[at + 1 + bool(value) :]] if new else []
    if (extra := EXTRA.search(str(getattr(error, "message", "")))) and extra[1] in words:
        flags, at = [flag for flag in _fitting(extra[1], _options(error)) if flag not in words], words.index(extra[1])
        return [*words[:at], *flags, *words[at:]] if len(flags) == 1 else []
    if word not in words:
        return []
    if detail["type"].endswith("_parsing"):
        new = [written_out(word, whole=detail["type"] == "int_parsing") or word]
    elif chosen is None:
        return []
    else:
        choices = re.findall(r"'([^']*)'", chosen[1])
        rows = {"devices": documents(DEVICES), "models": model_ids(), "formats": FORMATS}
        kinds = [
            each for each, names in rows.items() if each in choices and squashed(word) in squashed(" ".join(names))
        ]
        new = [name] if (name := meant(word, choices)) != word else [*kinds[:1], word]
    flag = _name(getattr(error, "param", None))
    at = words.index(word, words.index(flag) if flag in words else 0)
    return [*words[:at], *new, *words[at + 1 :]] if new != [word] else []


def taken(typed: list[str], words: list[str]) -> list[str]:
    """A line of each part of a command that was replaced by other words, or got a flag."""
    parts = SequenceMatcher(None, typed, words).get_opcodes()
    more = {"replace": 0, "insert": 1}  # words after it, which stand behind the flag
    changed = [(slice(a, b + more[tag]), slice(c, d + more[tag])) for tag, a, b, c, d in parts if tag in more]
    return [f"{' '.join(typed[old])}: taken as {' '.join(words[new])}" for old, new in changed]


def _fitting(word: str, options: list[str]) -> list[str]:
    """The flags of a command that take a word: a study, a device or a run; of a file that says what it is, one."""
    is_file, content = word.endswith((".yaml", ".yml")), b""
    if is_file and isfile(word) and access(word, R_OK):
        content = outside.beginning(Path(word), outside.MB)
    of_device = re.search(rb"^bandwidth:", content, re.MULTILINE) is not None
    fits = {
        "--config": is_file and not of_device,
        "--device": (is_file and (of_device or not content)) or word in documents(DEVICES) or bool(device_called(word)),
        "--resume": isdir(word),
    }
    return [flag for flag in options if fits.get(flag)]


def _with_a_flag(word: str, options: list[str]) -> str:
    """`write --device rpi5, or ` of a word that flags take."""
    flags = [f"{flag} {in_a_command(word)}" for flag in _fitting(word, options)]
    hint = f"write {' or '.join(flags)}" if flags else "drop them (several values stand behind a flag with commas)"
    return f"{hint}, or "


def _options(error: Any) -> list[str]:
    """Every option of the command that refused one."""
    command = getattr(getattr(error, "ctx", None), "command", None)
    params = (param for param in getattr(command, "params", []) if not getattr(param, "hidden", False))
    return [name for param in params for name in param.opts if name.startswith("--")]


def _name(param: Any) -> str:
    names: list[str] = getattr(param, "opts", None) or [""]
    return max(names, key=len)


def _refused(error: Any, message: str) -> str:
    """The expected value in an error, as the check behind the parser words it."""
    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        return f"{message.rstrip('.')}; correct it"
    detail: Any = cause.errors()[0]
    if choices := CHOICE.search(detail["msg"]):
        return unknown("one", detail["input"], re.findall(r"'([^']*)'", choices[1]))
    return plain(detail)


def written_out(text: str, *, whole: bool) -> str:
    """The plain number that `5,000`, `1e4`, `1k` or `10s` mean; "" where it is none, or not a whole one."""
    found = (COUNT if whole else SECONDS).fullmatch(text.strip())
    if found is None:
        return ""
    digits, power, unit = found.groups()
    value = float(digits.replace(",", "").replace("_", "")) * 10.0 ** int(power or 0) * UNITS[unit.lower()]
    if value == round(value):
        return f"{value:.0f}"
    return "" if whole else f"{value:g}"
