"""The work of `init`: a commented study with its schema for editors, or a strategy of one's own, written to be edited."""

import re
from keyword import iskeyword
from pathlib import Path

from nas.commands.list import application_studies
from nas.commands.requests import InitRequest
from nas.commands.schema import schema_text
from nas.errors import UsageError
from nas.files.faults import unknown
from nas.files.tables import write
from nas.search.discovery import named
from nas.study.user_code import could_be_own
from nas.study.value_parsers import written_vocabulary
from nas.terminal.console import notice
from nas.terminal.doors import command as typed
from objectives import outside
from objectives.plugins import documents, folder

KINDS = {"run": "study", "compare": "comparison", "devices": "devices"}  # of file, by the command that reads it


def init(request: InitRequest) -> None:
    """Write the file, beside a study the schema that its first line names, and say how to run it.

    Raises:
        UsageError: a file that exists, an unknown study or application.
    """
    path, study = request.path, request.study
    if request.application is not None:
        study = application_study(request.application)
    if path.suffix == ".py":
        text, command = strategy_text(path, study or request.vocabulary)
    else:
        text, command = study_text(path, study or "paper", request.vocabulary)
        text = text if study is not None else of_a_device(text)
    if path.exists():
        raise UsageError(f"{path}: expected a new file, got an existing one; name another")
    name, _, flags = command.partition(" ")
    said = [f"{path} written. Edit it, then: {typed(name)} {flags}"]
    if path.suffix != ".py":
        text, beside = with_schema(text, path, KINDS[name])
        said.append(beside)
    write(path, text)
    if not request.quiet:
        for line in said:
            notice(line)


def with_schema(text: str, path: Path, kind: str) -> tuple[str, str]:
    """A file's text below a line that names its schema for editors, which is written beside it; and what there is to say of that.

    A schema that lies there already stays as it is: other files may name it too.
    """
    schema = path.with_name(f"{kind}.schema.json")
    said = f"{schema} is for editors: with a YAML language server they complete keys and mark wrong ones."
    if schema.exists():
        said = f"{schema} was there and stays as it is; {typed('list')} --schema {kind} prints this version's."
    else:
        write(schema, schema_text(kind))
    return f"# yaml-language-server: $schema={schema.name}\n{text}", said


def application_study(name: str) -> str:
    """The shipped study of an application, by its study's name with spaces, hyphens and capitals as one likes.

    Raises:
        UsageError: no such application.
    """
    known = application_studies()
    wanted = re.sub(r"[\s-]+", "_", name.strip()).lower()
    if wanted not in known:
        raise UsageError(f"--application: {unknown('an application', wanted, known)}")
    return wanted


def study_text(path: Path, study: str, vocabulary: str | None) -> tuple[str, str]:
    """A shipped study's text, with another vocabulary or several of them where it is given, and the command that runs a copy of it.

    Raises:
        UsageError: no such study, or no such vocabulary.
    """
    shipped = documents("configs")
    if study not in shipped:
        raise UsageError(f"--from: {unknown('a shipped study', study, shipped)}")
    text = outside.text(shipped[study], outside.MB)
    text = text if vocabulary is None else with_vocabulary(text, vocabulary)
    command = "compare" if "\nstudies:" in text else "devices" if "\ndevices:" in text else "run"
    return text, f"{command} --config {path}"


#: What a study to start from says in the place of the paper's conventions.
OF_A_DEVICE = {
    r"# The paper's study: .*": "# Which architecture is worth training for this device? Edit the device and the budgets.",
    r"name: paper": "name: mine",
    r"law: hw_codesign ": "law: evidence    ",
    r"preset: paper ": "preset: device",
}


def of_a_device(text: str) -> str:
    """The paper's study with what a real device shows and losses by published trainings."""
    for line, instead in OF_A_DEVICE.items():
        text = re.sub(f"(?m)^{line}", instead, text)
    return text


def with_vocabulary(text: str, written: str) -> str:
    """A study's text with a vocabulary, or several, in place of its own, below where it says on what models run.

    Raises:
        UsageError: another value, or a file of several studies.
    """
    try:
        line = f"vocabulary: {written_vocabulary(written)}"
    except ValueError as error:
        raise UsageError(f"--vocabulary: {error}") from None
    for place, after in ((r"(?m)^(?:# )?vocabulary:.*$", ""), (r"(?m)^(?:precision|preset):.*$", "{}\n")):
        if found := re.search(place, text):
            return text[: found.start()] + after.format(found[0]) + line + text[found.end() :]
    raise UsageError("--vocabulary: expected one study to write it into, got a file of several; write it there")


def strategy_text(path: Path, study: str | None) -> tuple[str, str]:
    """The template of a strategy, and the command that runs a copy of it.

    Raises:
        UsageError: a name that --algo does not take, or what a study would start from.
    """
    if study is not None:
        raise UsageError(
            f"--from, --application, --vocabulary: expected a study file with it, got {path}; drop it, or name a file in .yaml"
        )
    module = path.stem if path.is_absolute() else ".".join(path.with_suffix("").parts)
    if not could_be_own(module) or module in named() or any(map(iskeyword, module.split("."))):
        raise UsageError(
            f"{path}: expected a module name of your own, got {module!r}; name it for example my_search.py"
        )
    text = outside.text(folder("nas.strategies") / "_template.py", outside.MB)
    return re.sub(r"(?m)^#   .*", lambda line: re.sub(r"\bstrategy\b", module, line[0]), text), f"run --algo {module}"
