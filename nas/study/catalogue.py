"""Spaces, laws and devices by name or by file, and the content a study embeds."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults, Path, alternatives, near_file, similar, unknown
from nas.study import entry_points
from nas.study.entry_points import PlugIn
from nas.study.user_code import code_named, loaded_code
from objectives import outside
from objectives.datasheet import as_printed
from objectives.device import Calibration, Device, Energy
from objectives.loss_law.form import Form
from objectives.loss_law.law import SHOWN_DIGITS, Law, origin_of
from objectives.measured_formats import FORMATS as MEASURED_FORMATS
from objectives.plausible import called_alike, device_called, impossible, numbers_agree
from objectives.plugins import documents, folder, normalised
from objectives.profile_choice import in_unmeasured_mode
from objectives.weight_formats.table import WeightFormat
from search_spaces.formats import FORMATS
from search_spaces.space import SearchSpace
from search_spaces.specification import SHIPPED, SpaceSpecification, expert_faults_of

M = TypeVar("M", bound=BaseModel)
FOLDERS = {"space": "search_spaces.spaces", "token_curve": "objectives.token_curves"}
KINDS = {"law": "laws", "device": "devices"}  # what installed packages add to
OWN = {  # what nothing is shipped of: what is expected, and what to do without a file
    "deltas": ("kinds of layers with their nats or a YAML file of them", "write {conv: 0.03}, or none")
}
REMEDIES = {key: remedy for key, (_, remedy) in OWN.items()} | {"token_curve": "see 'plas list token-curves'"}
NAMED = (*FOLDERS, *KINDS, *OWN)  # keys whose values are names, files or content


def named(key: str, given: Any, model: type[M], faults: Faults, at: Path = ()) -> M | None:
    """The space, law, device or deltas that a value names, embeds, or points to as a file; `at` is where it stands if not under the key."""
    try:
        content, inner, prefix, shipped = _content(key, given, faults, at or (key,))
    except UsageError as error:
        faults.add((), str(error))
        return None
    if content is None:
        return None
    found = None
    try:
        found = model.model_validate(content, context=SHIPPED if shipped else None)
        embedded = isinstance(given, dict)
        wrong = [*device_faults(found, embedded=embedded)] if isinstance(found, Device) and not shipped else []
    except ValidationError as error:
        inner.add_validation(error, prefix, model)
        heads = (text.partition(": ") for text in (expert_faults_of(content) if model is SpaceSpecification else ()))
        wrong = [(tuple(head.split(".")), message) for head, _, message in heads]
    for where, message in wrong:
        inner.add((*prefix, *where), message)
    faults.lines += [line for line in inner.lines if line not in faults.lines]
    return None if wrong else found


def _content(key: str, given: Any, faults: Faults, at: Path) -> tuple[Any, Faults, Path, bool]:
    """Raw content of a space, law, device or deltas, with the faults object that knows its lines; whether it ships."""
    if isinstance(given, dict):
        return given, faults, at, False
    if not isinstance(given, str):
        return None, faults, at, False
    try:
        path, whose = _place(key, given, faults, at)
    except UsageError as error:
        faults.add(at, str(error))
        return None, faults, at, False
    shipped = path.is_relative_to(folder("search_spaces")) or path.is_relative_to(folder("objectives"))
    try:
        content, origins = yaml_source.read(path)
        content = yaml_source.keys_of(content, path, REMEDIES.get(key, f"see 'plas list --schema {key}'"))
        if key == "device":
            written = as_printed(content, Device.model_fields)[1].items()
            origins = {**origins, **{(name,): origins[key,] for name, key in written if (key,) in origins}}
        if key == "law":
            content = with_file(_with_form(content), path) if path == FilePath(given) else _with_form(content)
    except UsageError as error:
        raise UsageError(f"{whose}{error}") from None
    return content, Faults({at: f"{whose}{origin}" for at, origin in origins.items()}), (), shipped


def _place(key: str, given: str, faults: Faults, at: Path) -> tuple[FilePath, str]:
    """The file of a name, and the beginning of messages about it: an installed package's with its distribution.

    Raises:
        UsageError: an unknown name, or one that is not unique.
    """
    if key in OWN:
        return _own_file(key, given), ""
    identifier, kind = normalised(given), KINDS.get(key)
    known = documents(FOLDERS[key] if kind is None else entry_points.SHIPPED[kind])
    theirs = None if kind is None else entry_points.found(kind, identifier, typed=faults.typed(at))
    if identifier in known:
        return known[identifier], ""
    if theirs is not None:
        return FilePath(theirs.place), f"{theirs}: "
    if FilePath(given).suffix in (".yaml", ".yml") or is_file(given):
        return FilePath(given), ""
    choices = known if kind is None else entry_points.named(kind)
    if key != "device":
        dense = ", or --only n_experts=1: designs without experts" if key == "space" and "dense" in given else ""
        raise UsageError(unknown(f"a {key}", given, choices, f"a YAML file{dense}"))
    if meant := device_called(given):
        return known[meant], ""
    like = called_alike(given) or [name for name in similar(given, sorted(choices)) if numbers_agree(given, name)]
    hint = f"did you mean {alternatives(like)}? Or write" if like else "write"
    raise UsageError(
        f"expected a device (the {len(choices)} names of 'plas list devices'), got {given!r}; {hint} a YAML file of name, int8 or fp16, "
        "bandwidth and memory"
    )


def _own_file(key: str, given: str) -> FilePath:
    """A file of what nothing is shipped of.

    Raises:
        UsageError: a name of none.
    """
    if not is_file(given):
        expected, remedy = OWN[key]
        raise UsageError(f"expected {expected}, got {given!r}; {near_file(FilePath(given), remedy)}")
    return FilePath(given)


def _with_form(content: dict[str, Any]) -> dict[str, Any]:
    """A law's content with an installed package's form written out, so that the law needs no package from then on.

    Raises:
        UsageError: the package's form cannot be had.
    """
    form = installed_form(content["form"]) if isinstance(content.get("form"), str) else None
    return content if form is None else {**content, "form": form.model_dump(mode="json", exclude_defaults=True)}


def with_format(raw: Mapping[str, Any], faults: Faults) -> Mapping[str, Any]:
    """A study's keys with an installed package's weight format written out, where its precision names one; of ours no package is read."""
    name, own = raw.get("precision"), raw.get("formats") or {}
    if not isinstance(name, str) or not isinstance(own, Mapping) or name in (*FORMATS, *own):
        return raw
    try:
        if (theirs := entry_points.found("formats", normalised(name))) is None:
            return raw
        return {**raw, "precision": theirs.name, "formats": {**own, theirs.name: installed_format(theirs)}}
    except UsageError as error:
        faults.add(("precision",), str(error))
        return {**raw, "precision": FORMATS[0]}


def installed_format(theirs: PlugIn) -> WeightFormat:
    """The weight format in an installed package's file.

    Raises:
        UsageError: every fault, with the distribution.
    """
    content, origins = yaml_source.read(FilePath(theirs.place))
    faults = Faults({at: f"{theirs}: {origin}" for at, origin in origins.items()})
    try:
        return WeightFormat.model_validate(content)
    except ValidationError as error:
        faults.add_validation(error, model=WeightFormat)
        faults.raise_if_any()
        raise


def installed_form(name: str) -> Form | None:
    """The form of a law that an installed package has under a name; None where none has.

    Raises:
        UsageError: several have, or its module cannot be imported or holds none.
    """
    if (code := code_named("forms", normalised(name))) is None:
        return None
    with loaded_code(code) as module:
        form = getattr(module, "FORM", None)
        if not isinstance(form, Form):
            raise UsageError(
                f"expected FORM, an objectives.loss_law.form.Form, in {code.place}, got {type(form).__name__}; the package needs mending"
            )
        return form


def is_file(name: str) -> bool:
    """Whether a name is a file; one that no file can have is not."""
    try:
        return FilePath(name).is_file()
    except OSError:
        return False


def id_and_mode(name: str) -> tuple[str, str]:
    """A device's id or file, and the power mode after an @ (empty without one)."""
    if is_file(name):
        return name, ""
    base, _, mode = name.partition("@")
    return base, normalised(mode)


def named_device(given: str | dict[str, Any] | None, faults: Faults, at: Path = ("device",)) -> Device | None:
    """A device by id, id@mode, file or content, in its mode; None of none; `at` is where it stands in the study.

    A mode without a profile gets what lies between those of others (`in_unmeasured_mode`); content stays as it is.
    """
    if not isinstance(given, str):
        return named("device", given, Device, faults, at)
    given, mode = id_and_mode(given)
    device = named("device", given, Device, faults, at)
    if device is None:
        return None
    try:
        placed = device.in_mode(mode) if mode else device
    except ValueError as error:
        faults.add(at, str(error))
        return None
    further = in_unmeasured_mode(device, mode)
    both = {name: [*getattr(placed, name), *those] for name, those in further.items() if those}
    return placed.model_copy(update=both) if both else placed


def load_device(name: str) -> Device:
    """A device by id, id@mode or file."""
    faults = Faults({("device",): "--device"})
    device = named_device(name, faults)
    faults.raise_if_any()
    assert device is not None
    return device


def load_space(name: str) -> SearchSpace:
    """A search space by name or file."""
    faults = Faults()
    specification = named("space", name, SpaceSpecification, faults)
    faults.raise_if_any()
    assert specification is not None
    return SearchSpace(specification)


def load_law(name: str) -> Law:
    """A loss law by name or file."""
    faults = Faults()
    law = named("law", name, Law, faults)
    faults.raise_if_any()
    assert law is not None
    return law


def device_faults(device: Device, *, embedded: bool) -> Iterator[tuple[Path, str]]:
    """Where in a device's file a format is unknown, or a power mode that the file does not have, and what to do.

    A device that is `embedded` in a study may hold profiles of modes that it was embedded without.
    """
    yield from () if embedded else impossible(device)
    known: dict[str, Sequence[Calibration | Energy]] = {"profiles": device.profiles, "energy": device.energy}
    modes = ("", device.mode, *device.modes)
    for at, each in ((((kind, i)), each) for kind, those in known.items() for i, each in enumerate(those)):
        for key, name in _formats(each):
            if name and name not in MEASURED_FORMATS:
                yield (*at, *key), unknown("a weight format", name, MEASURED_FORMATS)
        if not embedded and each.mode not in modes:
            named = ", ".join(device.modes) or "none"
            yield (*at, "mode"), f"expected a power mode of the file ({named}), got {each.mode!r}; add it to modes"


def _formats(each: Calibration | Energy) -> list[tuple[Path, str]]:
    """The names of formats in a profile or an energy, by key."""
    if isinstance(each, Energy):
        return [(("precisions", i), name) for i, name in enumerate(each.precisions)]
    return [(("precision",), each.precision), (("format",), each.format)]


LARGEST = 50_000_000  # bytes of a law file


def with_file(content: dict[str, Any], path: FilePath) -> dict[str, Any]:
    """A law's content with the file that it was read from, by path if relative, else by name."""
    given = content.get("provenance", {})
    digest = sha256_of(path)
    if not isinstance(given, dict) or digest is None:
        return content
    name = path.name if path.is_absolute() else str(path)
    return {**content, "provenance": {**given, "file": {"name": name, "sha256": digest}}}


def sha256_of(path: FilePath) -> str | None:
    """The hash of a file's content; None for what is no plain file, too large for a law, or not to be read."""
    try:
        return hashlib.sha256(outside.content(path, LARGEST)).hexdigest()
    except OSError:
        return None


def changed(law: Law) -> str:
    """That a law's file has another content now than when the law was read; "" where it has not, or is not there."""
    found = origin_of(law)
    if found is None or found.file is None or not found.file.name or FilePath(found.file.name).is_absolute():
        return ""
    now = sha256_of(FilePath(found.file.name))
    if now is None or now == found.file.sha256:
        return ""
    return f"{found.file.name} has changed since ({found.file.sha256[:SHOWN_DIGITS]} then, {now[:SHOWN_DIGITS]} now)"
