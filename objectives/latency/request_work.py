"""FLOPs and bytes of whole requests as they are served."""

import numpy as np

from objectives.dimensions import Dimensions
from objectives.latency.operator import CHUNK, Pass, passes, total_work
from objectives.latency.operators import ffn_operators, mixer_operators
from objectives.latency.roofline import base_operators, part_operators
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import Part


def pass_work(x: Dimensions, one: Pass) -> FloatArray:
    """FLOPs and bytes of whole architectures over a pass, (2, n)."""
    layer = total_work(
        [*mixer_operators(x, one.phase, one.scenario), *ffn_operators(x, one.phase, one.scenario)], one.phase
    )
    head = total_work(base_operators(x, one), one.phase)
    depth = one.depth(x)
    return np.stack([depth * of_layer + of_head for of_layer, of_head in zip(layer, head, strict=True)])


def request_work(architectures: Architectures, scenario: Scenario) -> FloatArray:
    """FLOPs and bytes of a whole request, prefill and decode, (2, n); a draft model's besides."""
    found = np.zeros((2, len(architectures)))
    for rows, x in Dimensions(architectures).blocks(CHUNK):
        for one in passes(scenario):
            found[:, rows] += one.share * pass_work(x, one)
    return found + draft_work(scenario)


def part_work(architectures: Architectures, scenario: Scenario, part: Part) -> tuple[FloatArray, FloatArray]:
    """FLOPs and bytes of attention or FFN, or of the head (`base`), over a whole request: of every layer, and once, each (2, n)."""
    found = np.zeros((2, 2, len(architectures)))
    for rows, x in Dimensions(architectures).blocks(CHUNK):
        for one in passes(scenario):
            work = total_work(part_operators(x, one, part), one.phase)
            once = int(part == "base" or one.one_layer)
            found[once, :, rows] += one.share * np.stack(np.broadcast_arrays(*work, x.depth)[:2])
    return found[0], found[1] + (draft_work(scenario) if part == "base" else 0.0)


def draft_work(scenario: Scenario) -> FloatArray:
    """FLOPs and bytes of a draft model over a request, (2, 1): its prefill, and n of its passes a step; 0 without one."""
    serving = scenario.serving
    if serving.drafter != "draft" or serving.draft is None:
        return np.zeros((2, 1))
    x = Dimensions(serving.draft)
    prefill, decode = (pass_work(x, one) for one in passes(scenario.plainly()))
    return prefill + decode * (serving.drafted / (1.0 + serving.accepted))
