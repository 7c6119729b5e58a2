"""perf.yaml of Qualcomm AI Hub models: time to first token and tokens per second of graphs compiled for one context.

The least time to first token is of one pass over 128 tokens, which attends to the whole context; the largest is mostly the
least times context / 128, computed and not measured. Source: quic/ai-hub-models qai_hub_models/configs/perf_yaml.py and the
models' perf.yaml, in both forms (`llm_metrics` a list, or the figures in the profile itself).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nas.files import yaml_source
from objectives.measured_formats import FORMATS
from plas_board.calibrate.figure import Cells, Document, Figure, cells_of, filled, named, part, positive, refuse

NAME = "AI Hub perf.yaml"
PASS = 128  # tokens of one pass of the prompt processor
DERIVED = 1e-3  # relative difference below which the largest time is the least times context / 128
ENGINES = {"genie": "Genie", "qnn_context_binary": "Genie"}  # one engine under two names
#: Devices of AI Hub by their chipset's file here.
DEVICES = {
    **dict.fromkeys(("Snapdragon 8 Elite Gen 5 QRD",), "snapdragon_8_elite_gen5"),
    **dict.fromkeys(
        ("Snapdragon 8 Elite QRD", "Samsung Galaxy S25", "Samsung Galaxy S25+", "Samsung Galaxy S25 Ultra"),
        "snapdragon_8_elite",
    ),
    **dict.fromkeys(("Samsung Galaxy S24", "Samsung Galaxy S24+", "Samsung Galaxy S24 Ultra"), "snapdragon_8_gen3"),
    **dict.fromkeys(("Snapdragon X Elite CRD",), "snapdragon_x_elite"),
}


def recognises(document: Document) -> bool:
    """The words that every such file has."""
    return all(f"{word}:" in document.text for word in ("precisions", "components", "performance_metrics"))


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """Every figure of every device, precision and engine."""
    for document in documents:
        content = yaml_source.parse(document.text, str(document.path))[0]
        for precision, component, device, engine, found in _profiles(content):
            yield from _figures(precision, component, device, engine, found)


def _profiles(content: Any) -> Iterator[tuple[str, str, str, str, Mapping[str, Any]]]:
    """Precision, component, device and engine with their figures."""
    for precision, inner in part(content, "precisions").items():
        for component, details in part(inner, "components").items():
            devices = part(details, "performance_metrics")
            for device, engine in ((name, engine) for name in devices for engine in part(devices, name)):
                profile = part(part(devices, device), engine)
                several = profile.get("llm_metrics")
                for found in several if isinstance(several, list) else [profile]:
                    yield precision, component, device, engine, found if isinstance(found, dict) else {}


def _figures(precision: str, component: str, device: str, engine: str, found: Mapping[str, Any]) -> Iterator[Figure]:
    program = ENGINES.get(engine, f"AI Hub {engine}")
    common: Cells = {"device": DEVICES.get(device, device), "engine": program, "precision": precision}
    other = f"weights in {precision!r}: no profile is of that format" * (precision not in FORMATS)
    base = Figure(named(component), common, fault=other)
    if "tokens_per_second" not in found:
        yield replace(base, cells={"device": common["device"]}, fault="no figures of a language model")
        return
    yield from (filled(base, measured, found) for measured in (_first_token, _largest, _decoding))


def _context(found: Mapping[str, Any]) -> int:
    return round(positive(found.get("context_length"), "context_length"))


def _times(found: Mapping[str, Any]) -> tuple[float, float]:
    times = part(found, "time_to_first_token_range_milliseconds")
    least, largest = (positive(times.get(key), f"time to first token, {key}") for key in ("min", "max"))
    refuse((least == largest, "one time to first token without the length of its prompt"))
    return least, largest


def _first_token(found: Mapping[str, Any]) -> Cells:
    return cells_of("prefill_ms", _times(found)[0], PASS, attended_len=_context(found))


def _largest(found: Mapping[str, Any]) -> Cells:
    (least, largest), context = _times(found), _context(found)
    derived = math.isclose(largest, least * context / PASS, rel_tol=DERIVED)
    refuse((derived, "the largest time to first token is the least times context / 128: derived, not measured"))
    return cells_of("prefill_ms", largest, context, attended_len=context)


def _decoding(found: Mapping[str, Any]) -> Cells:
    return cells_of("decode_tok_s", positive(found["tokens_per_second"], "tokens_per_second"), _context(found), 1)
