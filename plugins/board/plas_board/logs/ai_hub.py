"""perf.yaml of Qualcomm AI Hub models: time to first token and tokens per second of graphs compiled for one context.

The least time to first token is of one pass over 128 tokens, which attends to the whole context; the largest is mostly the
least times context / 128, computed and not measured. Source: quic/ai-hub-models qai_hub_models/configs/perf_yaml.py and the
models' perf.yaml, in both forms (`llm_metrics` a list, or the figures in the profile itself).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nas.files import yaml_source
from objectives.measured_formats import FORMATS
from plas_board.calibrate.figure import Document, Figure, Unusable, named, positive, refuse

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
    for precision, inner in _items(content, "precisions"):
        for component, details in _items(inner, "components"):
            for device, engines in _items(details, "performance_metrics"):
                for engine, profile in engines.items() if isinstance(engines, dict) else ():
                    several = profile.get("llm_metrics") if isinstance(profile, dict) else None
                    for found in several if isinstance(several, list) else [profile]:
                        yield precision, component, device, engine, found if isinstance(found, dict) else {}


def _items(content: Any, key: str) -> Iterator[tuple[str, Any]]:
    inner = content.get(key) if isinstance(content, dict) else None
    yield from inner.items() if isinstance(inner, dict) else ()


def _figures(precision: str, component: str, device: str, engine: str, found: Mapping[str, Any]) -> Iterator[Figure]:
    common: dict[str, str | float] = {
        "device": DEVICES.get(device, device),
        "engine": ENGINES.get(engine, f"AI Hub {engine}"),
        "batch": 1,
        "precision": precision,
    }
    name = named(component)
    if "tokens_per_second" not in found:
        yield Figure(name, {"device": common["device"]}, fault="no figures of a language model")
        return
    for measured in (_first_token, _largest, _decoding):
        try:
            refuse(((precision not in FORMATS, f"weights in {precision!r}: no profile is of that format"),))
            yield Figure(name, common | measured(found))
        except Unusable as error:
            yield Figure(name, {"device": common["device"]}, fault=str(error))


def _context(found: Mapping[str, Any]) -> int:
    return round(positive(found.get("context_length"), "context_length"))


def _times(found: Mapping[str, Any]) -> tuple[float, float]:
    times = found.get("time_to_first_token_range_milliseconds")
    least, largest = (
        positive((times if isinstance(times, dict) else {}).get(key), f"time to first token, {key}")
        for key in ("min", "max")
    )
    refuse(((least == largest, "one time to first token without the length of its prompt"),))
    return least, largest


def _first_token(found: Mapping[str, Any]) -> dict[str, str | float]:
    least, context = _times(found)[0], _context(found)
    return {"metric": "prefill_ms", "value": least, "prompt_len": PASS, "gen_len": 0, "attended_len": context}


def _largest(found: Mapping[str, Any]) -> dict[str, str | float]:
    (least, largest), context = _times(found), _context(found)
    derived = math.isclose(largest, least * context / PASS, rel_tol=DERIVED)
    refuse(((derived, "the largest time to first token is the least times context / 128: derived, not measured"),))
    return {"metric": "prefill_ms", "value": largest, "prompt_len": context, "gen_len": 0, "attended_len": context}


def _decoding(found: Mapping[str, Any]) -> dict[str, str | float]:
    rate = positive(found["tokens_per_second"], "tokens_per_second")
    return {"metric": "decode_tok_s", "value": rate, "prompt_len": _context(found), "gen_len": 1}
