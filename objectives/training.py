"""FLOPs of training and serving, and hours on a device."""

from dataclasses import dataclass

import numpy as np

from objectives.counts import ParameterGroups, count
from objectives.device import Device
from objectives.dimensions import Dimensions
from objectives.shares import Share
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import Part

PASSES = 3.0  # forward once, backward twice as much


@dataclass(frozen=True)
class Training:
    """Where and how a model is trained, and how many tokens it will serve in its life.

    utilisation: the share of the device's dense FP16 (and BF16) peak that training achieves, as a rule 0.3 to 0.5.
    Source of its default: Dubey et al. 2024 (2407.21783, table 4), 38 to 43 % with Llama 3.
    """

    device: Device | None = None
    utilisation: float = 0.4
    sequence_length: int = 2048
    served_tokens: float = 0.0

    def hours(self, flops: FloatArray) -> FloatArray:
        """Return hours on one device, (n,); n devices at the same utilisation take the n-th part.

        Raises:
            ValueError: no device is given.
        """
        if self.device is None:
            raise ValueError(
                "train_hours: expected a device that trains, got none; add --set training.device=h100_sxm, or training.device to the study"
            )
        return device_hours(flops, self.device, self.utilisation)


def device_hours(flops: FloatArray, device: Device, utilisation: float) -> FloatArray:
    """Return flops / (utilisation · FP16 peak) in hours, (n,)."""
    return flops / (utilisation * device.peak("fp16")) / 3600.0


def forward_flops(architectures: Architectures, sequence_length: int) -> FloatArray:
    """Return the FLOPs of one token forward, mean over a sequence, (n,); one multiply-accumulate is 2.

    2 (P_active + V d) + 4 l d_q (S + 1)/2, where P_active are the linear weights and the router that one token uses,
    V d the LM head (none without a vocabulary), and S the sequence length under a causal mask. A window w has min(i, w)
    keys at the i-th place; linear attention its recurrence instead of scores.

    Source: Kaplan et al. 2020 (2001.08361, table 1), 2 N and the attention's term, which the causal mask halves.
    """
    g = count(architectures)
    used = _of_mixers(g) + _of_ffns(g) + _head(architectures)
    flops: FloatArray = 2.0 * used + _scores(architectures, sequence_length)
    return flops


def drafting_flops(architectures: Architectures, sequence_length: int) -> FloatArray:
    """Return the FLOPs of one token through a head for multi-token prediction, (n,): its layer, projection and LM head."""
    layers = forward_flops(architectures, sequence_length) - 2.0 * _head(architectures)
    return layers / architectures.depth + 2.0 * (_projection(architectures) + _head(architectures))


def drafting_share(architectures: Architectures, sequence_length: int, part: Part) -> Share:
    """Return a part's share of `drafting_flops`: one layer of attention and FFN."""
    if part == "base":
        return Share(once=(2.0 * (_projection(architectures) + _head(architectures)),))
    return Share(once=forward_share(architectures, sequence_length, part).per_layer)


def forward_share(architectures: Architectures, sequence_length: int, part: Part) -> Share:
    """Return a part's share of the FLOPs of one token forward."""
    g = count(architectures)
    if part == "base":
        return Share(once=(2.0 * _head(architectures),))
    if part == "attention":
        mixers = 2.0 * _of_mixers(g) + _scores(architectures, sequence_length)
        return Share(per_layer=(mixers / architectures.depth,))
    return Share(per_layer=(2.0 * _of_ffns(g),))


def training_flops(
    architectures: Architectures, tokens: FloatArray, sequence_length: int, *, drafting: bool = False
) -> FloatArray:
    """Return the FLOPs of training on `tokens` (n,), 3 · tokens · `forward_flops`, (n,): 6 N D and attention's.

    `drafting`: of a head for multi-token prediction too.
    """
    forward = forward_flops(architectures, sequence_length)
    return PASSES * tokens * (forward + drafting_flops(architectures, sequence_length) if drafting else forward)


def _of_mixers(g: ParameterGroups) -> FloatArray:
    return g.attention + g.mixers


def _of_ffns(g: ParameterGroups) -> FloatArray:
    return g.experts_active + g.shared_expert + g.dense + g.router


def _head(architectures: Architectures) -> FloatArray:
    return architectures.vocabulary.astype(np.float64) * architectures.width


def _projection(architectures: Architectures) -> FloatArray:
    return 2.0 * architectures.width.astype(np.float64) ** 2


def _scores(architectures: Architectures, sequence_length: int) -> FloatArray:
    """Scores and their product with the values, of the mean number of places that a token attends to; recurrences."""
    x = Dimensions(architectures)
    scores = 4.0 * x.query_dim * x.kinds.keys_of_a_token(sequence_length)
    if x.kinds.linear is None:
        return scores
    return scores + architectures.n_linear * x.kinds.scan_flops * x.kinds.state
