"""Train or take: published models that fit a study's device and limits, and the tokens until its pick is level with them."""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from nas.answer.device_times import times_of
from nas.document.document import Table, table_of
from nas.problem.parity import LossCurve, Parity, losses_after
from nas.problem.picks import kept
from nas.problem.problem import Problem
from nas.problem.settings import SCENARIOS, in_setting, trained_on
from nas.problem.uncertainty import AS_GOOD
from nas.study.catalogue import load_device
from nas.study.published import MEMORY, label_of, missed_by, prices_whole_models, published
from objectives.device import Device
from objectives.loss_law.law import Law
from objectives.published_models import Trained
from objectives.training import device_hours, training_flops
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray

GPU = "h100_sxm"  # that trains where the study names none
BYTES = 4.0  # of English in a token of the law's
FEWEST_BYTES, MOST_BYTES = 3.6, 4.4  # of published tokenizers
FEWEST_TOKENS, MOST_TOKENS = 2e12, 4e13  # of today's models, where a model's own say nothing
#: Sd of what two laboratories' data add to a difference of losses, nats. Source: studies/parity.
OTHER_DATA = 0.05
SHOWN = 12  # the newest offers
WORD = " tokens"
BESIDES = re.compile(r"^NVIDIA | SXM| PCIe| \d+ GB$")  # in the name of a GPU


@dataclass(frozen=True)
class Offer:
    """A published model that fits: its metrics in the study, its predicted loss, nats, and the pick's tokens until it is level.

    hours: of the GPU, for those tokens.
    """

    trained: Trained
    label: str
    metrics: dict[str, float]
    loss: float
    parity: Parity
    hours: Parity


@dataclass(frozen=True)
class TrainOrTake:
    """Whether to train the pick or to take a published model.

    offers: the newest models that fit and that the law prices, the newest first; best: the newest of those whose predicted loss is the lowest, or nearly.
    time: the metric that is shown, ms. tokens: that the pick is meant at. gpu, utilisation: that trains it. fits: how many of the `of` known models fit.
    unpriced: those that fit and that the law does not price, the newest first.
    """

    offers: tuple[Offer, ...]
    best: Offer | None
    time: str
    tokens: float
    gpu: str
    utilisation: float
    fits: int
    of: int
    unpriced: tuple[str, ...]

    @property
    def take(self) -> bool:
        """Whether the pick needs more tokens than it is meant at to be level with the best model."""
        return self.best is not None and self.best.parity.middle > self.tokens


def train_or_take(problem: Problem, pick: Architectures) -> TrainOrTake | None:
    """Compare the pick, one architecture, with the published models that fit its device and the limits.

    Returns:
        None where times or losses are not those of whole models: in the paper's conventions, under a law that does not see tokens or carries no draws,
        of a pick outside of its evidence, and of a request whose tokens are not known of every vocabulary.
    """
    settings = [name for name in problem.space.settings if name in SCENARIOS]  # what a model, too, is priced under
    there = in_setting(problem, {name: int(getattr(pick, name)[0]) for name in settings})
    safe, took = kept(there.budgets, there.columns), there.assess(pick)
    if all(took[limit.metric][0] <= limit.limit for limit in safe):  # as the pick keeps limits, so do models
        there = replace(there, budgets=(*there.budgets, *safe))
    law, training, time = there.scenario.law, there.scenario.training, times_of(problem)[0]
    if not (prices_whole_models(there) and law.sees_tokens and law.tokens and law.draws) or law.extrapolates(pick)[0]:
        return None
    try:
        missed, taken = missed_by(there, time)
    except ValueError:
        return None
    (trained, models), fits = published(), missed <= 0.0
    losses, trainer = predicted_losses(law, fits), training.device or load_device(GPU)
    priced = np.flatnonzero(np.isfinite(losses)).tolist()
    least = min((losses[at] for at in priced), default=0.0)
    best = next((at for at in priced if losses[at] <= least + AS_GOOD), None)
    curve = LossCurve.of(law, pick)
    offers, per_token = {}, hours_per_token(problem, pick, trainer)
    for at in sorted({*priced[:SHOWN], *([] if best is None else [best])}):
        metrics = {name: float(column[at]) for name, column in taken.items()}
        parity = parity_with(curve, trained[at], losses_of_model(law, trained[at], models[[at]]))
        hours = Parity(*(per_token * number for number in (parity.low, parity.middle, parity.high)))
        offers[at] = Offer(trained[at], label_of(trained[at]), metrics, float(losses[at]), parity, hours)
    unpriced = tuple(label_of(trained[at]) for at in np.flatnonzero(fits & ~np.isfinite(losses)))
    own = None if best is None else offers[best]
    about = (time, law.tokens, trainer.name, training.utilisation, int(fits.sum()), len(fits), unpriced)
    return TrainOrTake(tuple(offers.values()), own, *about)


def hours_per_token(problem: Problem, pick: Architectures, trainer: Device) -> float:
    """How long a GPU trains the pick on one token, h."""
    training = problem.scenario.training
    flops = training_flops(problem.headed(pick), np.ones(1), training.sequence_length)
    return float(device_hours(flops, trainer, training.utilisation)[0])


def predicted_losses(law: Law, fits: BoolArray) -> FloatArray:
    """The predicted loss of each model that fits and lies inside of what the law was fitted on, nats; NaN of the others."""
    trained, models = published()
    losses = np.full(len(fits), np.nan)
    if fits.any():
        tokens = np.array([_seen(model)[1] for model in trained])
        fitting, theirs = replace(models, tokens=tokens)[fits], trained_on(law, float(tokens[0]))
        losses[fits] = np.where(theirs.extrapolates(fitting), np.nan, theirs.loss(fitting))
    return losses


def _seen(trained: Trained) -> tuple[float, float, float]:
    """Tokens of the law's kind that a model saw: the fewest, a usual number and the most that they may be.

    A model that was made from another one knows what that one saw.
    """
    factor = (trained.bytes_per_token or BYTES) / BYTES
    if trained.tokens is None:
        return FEWEST_TOKENS * factor, (FEWEST_TOKENS * MOST_TOKENS) ** 0.5 * factor, MOST_TOKENS * factor
    most = max(trained.tokens, MOST_TOKENS) if trained.made_by else trained.tokens
    return trained.tokens * factor, (trained.tokens * most) ** 0.5 * factor, most * factor


def losses_of_model(law: Law, trained: Trained, model: Architectures) -> FloatArray:
    """Compute the losses that a law allows of a published model after the tokens that it may have seen, nats, (draws, 3)."""
    return losses_after(law, model, np.array(_seen(trained)))


def parity_with(curve: LossCurve, trained: Trained, losses: FloatArray) -> Parity:
    """The pick's tokens until it is level with a model of these losses, over everything that is not published of it."""
    least, usual, most = (curve.level_with(losses[:, [at]], OTHER_DATA) for at in range(losses.shape[1]))
    few, many = (FEWEST_BYTES / BYTES, MOST_BYTES / BYTES) if trained.bytes_per_token is None else (1.0, 1.0)
    return Parity(least.low * few, usual.middle, most.high * many)


def advice(choice: TrainOrTake) -> Iterator[str]:
    """What to do, in a sentence or two: the model to take where it is the better one, and the tokens until the design is level with it."""
    best = choice.best
    if best is None:
        priced = f"{choice.fits:,} fit, none that the law prices" if choice.fits else "none fits"
        yield f"Of {choice.of} published models {priced}."
        return
    taken = f"loss {best.loss:.2f}, {_rounded(best.metrics[choice.time], 3)} ms, {best.metrics[MEMORY]:.2f} GB"
    about = f"{best.label} ({tokens_of(best.trained)}, {best.trained.licence})"
    yield f"{'Take' if choice.take else 'Train it: the best published model that fits is'} {about}: {taken}."
    yield level(best.parity, best.hours, choice.gpu)


def level(parity: Parity, hours: Parity, gpu: str) -> str:
    """`To be level, train on 73 B tokens (90 %: 6.5 B to 26 T): 153 H100 hours.`"""
    low, middle, high = (tokens(number) for number in (parity.low, parity.middle, parity.high))
    name = BESIDES.sub("", gpu)
    if not np.isfinite(parity.low):
        return "No number of tokens makes it level."
    if not np.isfinite(parity.middle):
        return f"To be level, train on {low} at the least, {_hours(hours.low, name)}; more likely no number suffices."
    between = f"{low.removesuffix(WORD)} to {high.removesuffix(WORD)}"
    return f"To be level, train on {middle} (90 %: {between}): {_hours(hours.middle, name)}."


def tokens(number: float) -> str:
    """`73 B tokens`, `1.2 T tokens`; `never` of infinitely many."""
    if not np.isfinite(number):
        return "never"
    scale, unit = (1e12, "T") if number >= 0.9995e12 else (1e9, "B")
    return f"{_rounded(number / scale)} {unit}{WORD}"


def _rounded(number: float, digits: int = 2) -> str:
    """A number to some digits, `7,200`."""
    rounded = float(f"{number:.{digits}g}")
    return f"{rounded:,.0f}" if rounded >= 10**digits else f"{rounded:g}"


def tokens_of(trained: Trained) -> str:
    """`36 T tokens`, `80 B tokens after pruning`, `tokens not published`."""
    made = f" after {trained.made_by}" if trained.made_by else ""
    return ("tokens not published" if trained.tokens is None else tokens(trained.tokens)) + made


def _hours(number: float, gpu: str) -> str:
    return f"{_rounded(number)} {gpu} hours" if number >= 1 else f"less than an hour of {gpu}"


NOTES = (
    "Loss: predicted at the model's own tokens. Level after: the design's training tokens until its predicted loss is the model's, 90 % interval over the law's "
    "draws, another laboratory's data and what is not published (studies/parity).",
    "Pruning a larger published model to a dense design beats a random start at equal tokens; the gain shrinks with tokens (arXiv 2606.14150).",
)


def offers_table(choice: TrainOrTake, *, dense: bool) -> Table:
    """The offers with their tokens, licence, cost and loss, and the tokens until the design is level."""
    time = f"{choice.time.removesuffix('_ms')} (ms)"
    header = ("model", "date", "training tokens", "licence", time, "memory", "loss (nats)", "level after", "GPU hours")
    rows = [
        (
            *(offer.label, offer.trained.date, tokens_of(offer.trained).replace(WORD, ""), offer.trained.licence),
            *(f"{offer.metrics[choice.time]:,.4g}", f"{offer.metrics[MEMORY]:.2f} GB", f"{offer.loss:.2f}"),
            " to ".join(tokens(end).replace(WORD, "") for end in (offer.parity.low, offer.parity.high)),
            _rounded(offer.hours.middle) if np.isfinite(offer.hours.middle) else "",
        )
        for offer in choice.offers
    ]
    left = f"{choice.fits} of {choice.of} models fit. Not priced by the law: {', '.join(choice.unpriced)}."
    hours = f"GPU hours: {choice.gpu} at {100 * choice.utilisation:g} % of its FP16 peak."
    notes = [*NOTES[: 1 + dense], hours, *([left] if choice.unpriced else [])]
    return table_of(header, rows, "Published models that fit", notes)


def take_in_numbers(choice: TrainOrTake) -> dict[str, Any]:
    """The comparison as plain content; no number where there is none, as of tokens that never suffice."""

    def parity(of: Parity) -> list[float | None]:
        return [number if np.isfinite(number) else None for number in (of.low, of.middle, of.high)]

    offers = [
        {**asdict(offer.trained), "name": offer.label, **offer.metrics, "loss": offer.loss}
        | {"level_after_tokens": parity(offer.parity), "level_after_gpu_hours": parity(offer.hours)}
        for offer in choice.offers
    ]
    best = None if choice.best is None else choice.best.label
    about = {name: getattr(choice, name) for name in ("tokens", "gpu", "utilisation", "fits", "of")}
    return {"take": choice.take, "best": best, **about, "offers": offers, "not_priced": [*choice.unpriced]}
