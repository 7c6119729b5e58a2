"""Sentences on a study, a design and a run: the head, certainty, reading, limits."""

from collections.abc import Sequence

import numpy as np

from nas.answer.design_words import describe, tokens_in_words
from nas.answer.device_times import speeds
from nas.answer.outcome import Doubt, Outcome
from nas.answer.sureness import parts_lines
from nas.problem.evaluations import rounded
from nas.problem.law_caveats import active_experts_lines
from nas.problem.objective import PickQuery, unit_of
from nas.problem.problem import Problem
from nas.problem.settings import tokens_of
from nas.problem.uncertainty import FROM_LOSS, has_doubt
from nas.problem.wording import in_words as quantity_in_words
from nas.problem.wording import served_in_words
from nas.study.configuration import StudyConfig
from nas.study.study_laws import left_out_line, record_line
from objectives.loss_law.law import Law, origin_line, verdict_line
from objectives.quantities import bytes_in_words
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.space import SearchSpace

ALL_EVALUATED = "distinct evaluations"  # how the reason of a search ends that evaluated all that it may
OF_THE_PAPER = ("paper", "paper", "NVIDIA Jetson AGX Orin 64 GB", "hw_codesign")  # preset, space, device and law
WORKLOAD_WORDS = {"operator": "operator roofline", "closed_form": "closed-form latency"}


def headline(problem: Problem, c: StudyConfig, calibration_note: str) -> list[str]:
    """The space, what its law is known to get wrong, the device and the budgets of a search."""
    budgets = ", ".join(str(b) for b in problem.budgets) or "no budgets"
    objectives = ", ".join(o.name for o in problem.objectives)
    head = f", vocabulary {problem.vocabulary:,}" if problem.vocabulary else ""
    law = problem.scenario.law
    origin, size = law_in_head(law), f"{problem.space.name} space, {problem.space.size:,} architectures"
    searched = f"{size}; law {law.name}"
    if is_of_the_paper(problem, c):
        searched = f"{size}; the paper's study and law"
    return [
        f"{c.algo}, seed {c.seed}: {searched}",
        *([f"auto: {c.auto}; docs/strategies.md#which-one"] if c.auto else []),
        *([f"Law {law.name}: {law.caveat}"] if law.caveat else []),
        hardware(problem, c, calibration_note),
        f"Minimise {objectives}; {budgets}; {c.request_words}, batch {c.batch}{head}",
        *of_text(problem),
        *served_in_words(problem),
        *capabilities(problem.space, law),
        *([origin] if origin else []),
    ]


def is_of_the_paper(problem: Problem, c: StudyConfig) -> bool:
    """Whether preset, space, device and law are the paper's."""
    return (c.preset, problem.space.name, problem.scenario.device.name, problem.scenario.law.name) == OF_THE_PAPER


def of_text(problem: Problem) -> list[str]:
    """How designs of different vocabularies are compared, and how many tokens a request's text is where all have one; empty where it is given in tokens."""
    scenario, text = problem.scenario, problem.scenario.text
    if text is None or not (problem.space.own_heads or text.of_requests):
        return []
    relative, curve = text.cost.relative_to, text.curve.name
    if not problem.space.own_heads:
        parts = ((text.prompt, scenario.input_tokens), (text.answer, scenario.output_tokens))
        made = " and ".join(f"{bytes_in_words(size)} {tokens:,}" for size, tokens in parts if size)
        return [f"Text as tokens: {made}, of a vocabulary of {problem.vocabulary or relative:,} as {curve} counts"]
    sizes = problem.space.settings["vocabulary"]
    return [
        f"Vocabularies of {sizes[0]:,} to {sizes[-1]:,}: every design reads {text.prompt:,.0f} and writes {text.answer:,.0f} bytes "
        f"of text, as many of its own tokens as the curve {curve} counts; loss is per the text of a token of {relative:,}"
    ]


def law_in_head(law: Law) -> str:
    """Where a law comes from and, of a pooled one, its record on laboratories left out; "" of a law that says nothing of it."""
    return "; ".join(part for part in (origin_line(law), left_out_line(law)) if part)


def capabilities(space: SearchSpace, law: Law) -> list[str]:
    """Least capabilities of every design of a space with layers of several kinds; empty for other spaces."""
    c, most = space.specification.conditions, space.specification.conditions.max_kv_shared
    least = [f"at least {c.min_full_layers}"] if c.min_full_layers else []
    least += [f"one in {c.full_layer_every}"] if c.full_layer_every else []
    if not least:
        return []
    limited = [f"{' and '.join(least)} of full attention"]
    limited += [f"windows of at least {c.min_window:,} tokens"] if c.min_window else []
    limited += [] if most is None else [f"at most {most} layers that share KV" if most else "no shared KV caches"]
    deltas = deltas_in_words(law)
    text = f"Layers of several kinds: {', '.join(limited)} (limits: full_layers, window, kv_shared)"
    return [f"{text}; {deltas}" if deltas else text]


def deltas_in_words(law: Law) -> str:
    """What kinds of layers cost, nats where all layers are of the kind, and by whom; "" where nothing is said of it."""
    deltas = ", ".join(f"{kind} {delta:+.3g}" for kind, delta in law.layer_deltas.items())
    halved = f", window for each halving of {law.layer_context:,} tokens" if "window" in law.layer_deltas else ""
    source = f" ({law.layer_deltas_source})" if law.layer_deltas_source else ""
    return f"loss in proportion to the layers: {deltas} nats{halved}{source}" if deltas else ""


def hardware(problem: Problem, c: StudyConfig, calibration_note: str) -> str:
    """The device, its precision, the latency model and how fast it takes the device to be."""
    single = problem.scenario.calibration is not None and not problem.scenario.formats
    speed = speeds(problem.scenario) if single else calibration_note
    speed = known_speeds(problem.scenario) if problem.scenario.devices else speed
    load = problem.scenario.sustained
    kept = f"; sustained load, {100 * load.share:.0f} % of the speed of the first seconds" if load else ""
    return f"{devices_in_words(problem)}, {formats_in_words(problem)}, {WORKLOAD_WORDS[c.latency]}; {speed}{kept}"


def devices_in_words(problem: Problem) -> str:
    """The device in its power mode, or the names of those that designs may be on."""
    device, several = problem.scenario.device, [name for name, _ in problem.scenario.devices]
    if several:
        return f"{len(several):,} devices"
    return f"{device.name}{f'@{device.mode}' if device.mode else ''}"


def known_speeds(scenario: Scenario) -> str:
    """How the speed of each of several devices is known: `calibrated: a, b; typical of its class: c; datasheet peaks: d`."""
    found: dict[str, list[str]] = {}
    for name, each in scenario.by_device.items():
        profile = each.calibration
        how = "datasheet peaks" if profile is None else "typical of its class" if profile.typical else "calibrated"
        found.setdefault(how, []).append(name)
    return "; ".join(f"{how}: {in_short(names)}" for how, names in found.items())


def in_short(names: Sequence[str], most: int = 6) -> str:
    """Names in a line, of many the first and the last."""
    return ", ".join(names if len(names) <= most else [*names[: most - 1], "…", names[-1]])


def formats_in_words(problem: Problem) -> str:
    """Every precision that designs may have, with the bits of an LM head that are not those of the weights: `int4 (LM head 16 bits)`."""
    scenario, names = problem.scenario, list[str]()
    for each in scenario.formats or (scenario,):
        head, weights = (8.0 * float(np.asarray(size)) for size in (each.bytes_of_head(), each.precision.weight_bytes))
        apart = problem.has_head and head != weights
        names.append(each.precision.name + (f" (LM head {head:.3g} bits)" if apart else ""))
    return ", ".join(names)


def plot_axes(names: tuple[str, ...]) -> tuple[str, str] | None:
    """Which two objectives a plot shows: a cost across, the loss (or the first) up."""
    if len(names) < 2:
        return None
    up = next((n for n in names if n in FROM_LOSS), names[0])
    across = next(n for n in names if n != up)
    return across, up


def baseline_metric(outcome: Outcome, architecture: Architectures, name: str) -> float | None:
    """A metric of a baseline in the study's scenario; None where the model or a user's function does not cover it."""
    problem = outcome.study.problem
    if name in {f.name for f in problem.functions}:
        return None
    try:
        return float(problem.assess(problem.headed(architecture))[name][0])
    except ValueError:
        return None


def question_text(problem: Problem, question: PickQuery) -> str:
    """A question in words: `your budgets: decode_ms <= 20, memory_gb <= 64`, or an application's or baseline's label."""
    if question.budget is not None:
        return question.label
    return f"{question.label}: {', '.join(str(budget) for budget in problem.budgets) or 'none'}"


def certainty(outcome: Outcome, *, brief: bool = False) -> list[str]:
    """How sure the search is that it found the frontier; brief: how much of it was found, and why a search ended before its evaluations."""
    size, exact, d = outcome.study.problem.space.size, outcome.exact, outcome.distance
    besides = without_values(outcome)
    lines = [_evaluated(outcome), *besides]
    if brief and outcome.diagnosis is not None and outcome.diagnosis_covers_space:
        return lines
    if brief and outcome.whole:
        solved = f"Exact: all {outcome.covered:,} designs were solved; the frontier holds {len(outcome.frontier):,}."
        return [solved, *besides]
    if outcome.whole:
        frontier = f"Exact: the frontier of all {outcome.covered:,} architectures holds {len(outcome.frontier):,}"
        return [*lines, f"{frontier}; {outcome.how}."]
    if exact is not None and d is None:
        return [*lines, f"None of all {size:,} architectures of the space is feasible: no search can find one."]
    if d is None:
        why = "it takes more than seconds (--algo exact solves it)"
        why = why if outcome.study.problem.analytic else "a user's function cannot be enumerated"
        return [*lines, f"Frontier: {len(outcome.frontier):,} architectures; distance to the exact one unknown, {why}."]
    gap = f"{100 * d.gap:.0f} %" if d.gap >= 0.995 else f"{100 * d.gap:.2g} %"
    if brief:
        stopped = "" if outcome.ending.reason.endswith(ALL_EVALUATED) else f"Stopped: {outcome.ending.reason}."
        text = f"Found {d.found} of the exact frontier's {d.exact} in {outcome.charged:,} evaluations; gap {gap}"
        return [text, *filter(None, [stopped, *besides])]
    return [
        *lines,
        f"Against the exact frontier of all {size:,}: {d.found} of {d.exact} found, hypervolume gap {gap} (log scale), "
        f"IGD+ {100 * d.igd_plus:.2g} % and additive epsilon {100 * d.epsilon:.2g} % of its range.",
    ]


def _evaluated(outcome: Outcome) -> str:
    """How many distinct designs were evaluated, of how many proposals where some came again, and why the search ended."""
    asked, reason = outcome.ending.asked, outcome.ending.reason
    proposed = "" if asked == outcome.charged else f" ({asked:,} proposed; those that came again are free)"
    ended = "as many as asked for" if reason.endswith(ALL_EVALUATED) else f"stopped: {reason}"
    return f"{outcome.charged:,} distinct designs evaluated{proposed}, {ended}."


def without_values(outcome: Outcome) -> list[str]:
    """How many results were known before, how many evaluations failed, how many designs the law does not cover, and how many a fidelity step stopped."""
    law, number = outcome.study.problem.scenario.law.name, outcome.without_value
    counted = {
        f"{outcome.known:,} results were known before, not charged.": outcome.known,
        f"{number['failed']:,} evaluations failed; their reasons are in evaluations.csv.": number["failed"],
        f"Law {law} does not cover {number['not_covered']:,} of these designs.": number["not_covered"],
        f"{number['stopped']:,} designs were stopped before the full fidelity (steps.csv); the frontier holds none of them.": number[
            "stopped"
        ],
    }
    return [text for text, counts in counted.items() if counts]


def reading(outcome: Outcome) -> list[str]:
    """One sentence about what the frontier is made of, of the axes that the law sees."""
    if len(outcome.frontier) < 2:
        return []
    a = outcome.study.problem.architectures(outcome.frontier.genotypes)
    sparse, experts = a.n_experts > 1, "all of the frontier is dense"
    if sparse.any():
        top1 = f"{100 * float((a.top_k[sparse] == 1).mean()):.0f} % of that routes to one expert"
        experts = f"{100 * float(sparse.mean()):.0f} % of the frontier is sparse, {top1}"
    meaning = {
        "n_experts": experts,
        "depth": f"layers {a.depth.min()} to {a.depth.max()} (median {np.median(a.depth):.0f})",
        "width": f"width {a.width.min()} to {a.width.max()} (median {np.median(a.width):.0f})",
        "ffn": f"median FFN ratio {np.median(a.ffn_ratio):.3g}",
    }
    return [f"Reading: {'; '.join(text for axis, text in meaning.items() if axis not in outcome.blind)}."]


def limits(outcome: Outcome) -> list[str]:
    """The range in which the loss law can be trusted, and everything that it leaves open of the answer."""
    law, problem, doubt = outcome.study.problem.scenario.law, outcome.study.problem, outcome.doubt
    if len(outcome.frontier) == 0:
        return []
    outside = int(law.extrapolates(problem.architectures(outcome.frontier.genotypes)).sum())
    tokens = tokens_in_words(tokens_of(problem))
    ranges = ", ".join(f"{quantity_in_words(name)} {low:g} to {high:g}" for name, (low, high) in law.fitted_on.items())
    beyond = f"{outside} of the frontier lie outside (*)" if outside else "the frontier lies inside"
    fitted = f"fitted on {ranges}; {beyond}; * extrapolates" if ranges else "fitted on a range that it does not state"
    of_law = f"law {law.name}{f' on {tokens}' if tokens else ''}, {uncertainty_in_words(law)}, {fitted}"
    return [
        f"Limits: losses are predictions of {of_law}.",
        *fit_lines(law),
        *doubt_outside(law, outside),
        *active_experts(outcome),
        *(_steps(doubt) if doubt else ()),
        *equal_loss(outcome),
        *(_not_decided(outcome, doubt) if doubt else ()),
        *([] if outcome.optimal is None else [optimality(outcome.optimal, law, outside, len(outcome.evaluations))]),
        *(_of_level(doubt) if doubt else ()),
    ]


def uncertainty_in_words(law: Law) -> str:
    """`residual standard deviation 0.013 nats and 256 draws`; where a law says neither, what a published R² would imply."""
    draws = len(law.draws) + sum(len(rival.draws) for rival in law.rivals)
    sd = [] if law.residual_sd is None else [f"residual standard deviation {law.residual_sd:.3g} nats"]
    if sd or draws:
        return " and ".join([*sd, *([f"{draws} draws"] if draws else [])])
    implied = law.implied_residual_sd
    hint = f" (its R² implies a residual sd near {implied:g}: --set residual_sd={implied:g})" if implied else ""
    return f"uncertainty unknown{hint}"


def doubt_outside(law: Law, outside: int) -> list[str]:
    """What is claimed of so many designs outside of the law's evidence; nothing of none, and of a law without uncertainty."""
    if not has_doubt(law) or not outside:
        return []
    head = f"Outside of the evidence ({outside:,} of the frontier) no difference is claimed"
    if law.draws and law.beyond_rows is None:
        head += "; loss@q is too narrow there, by how much the law's file does not say"
    elif law.draws:
        head += f"; there loss@q spreads {law.beyond_rows:.2g} times as wide as the draws, as the law's largest rows did when left out of its fit"
    return [head]


def _steps(doubt: Doubt) -> list[str]:
    """How many steps of the frontier the law tells apart."""
    if doubt.groups is None or not doubt.steps:
        return []
    inside = int((doubt.groups >= 0).sum())
    within = "" if inside == len(doubt.groups) else " within the evidence"
    of = f"of the frontier's {inside:,} designs{within}"
    return [f"The law tells {doubt.steps} steps {of} apart: in a step the cheapest will do"]


def _not_decided(outcome: Outcome, doubt: Doubt) -> list[str]:
    """What the answer rests on, and what the law does not decide of it: designs that it cannot tell from it."""
    problem, answer, alike = outcome.study.problem, outcome.picks[0].answer, doubt.not_told_apart
    if answer is None:
        return []
    parts = parts_lines(problem.scenario.law, problem.architectures(answer.genotypes), outcome.study.baselines)
    if alike is None:
        return parts
    many = "1 evaluated design is" if alike.number == 1 else f"{alike.number:,} evaluated designs are"
    return [*parts, f"Within your budgets {many} not told apart from the answer"]


def _of_level(doubt: Doubt) -> list[str]:
    """How unsure one loss is, on a text that nobody has seen, beside a difference; nothing of a law without draws."""
    if doubt.level_sd is None:
        return []
    level = f"loss@q is of one loss on an unknown text and tokenizer: over the law's draws and misfit the pick's has an sd of {doubt.level_sd:.2g} nats"
    for label, first in [*doubt.differences[0].items()][:1]:
        if first.known:
            sd = (first.high - first.low) / 3.29
            return [f"{level}, its difference from {label} one near {sd:.2g}: differences are what to go by."]
    return [f"{level}; what all designs share of it cancels in differences."]


def optimality(probability: FloatArray, law: Law, outside: int, evaluated: int) -> str:
    """How sure the law's draws are of the frontier's members, (n,), of which so many lie outside the law's rows."""
    draws, of = len(law.drawn), f"Over the law's {len(law.drawn)} draws a member of this frontier is Pareto-optimal"
    if np.isnan(probability).all():
        why = (
            f"each of the law's {draws} draws orders all designs alike, since its form can give no other answer; their"
        )
        if outside == len(probability):
            why = "the whole frontier lies outside the law's rows, where all draws extrapolate by one form and their"
        return f"No probability of being optimal: {why} agreement is no evidence."
    inside = int(np.isfinite(probability).sum())
    median = "median" if inside == len(probability) else f"median of the {inside:,} inside the law's rows"
    likely = f"{int((probability >= 0.5).sum())} of {len(probability)} with at least 0.5 (frontier.csv)"
    return f"{of} among the {evaluated:,} evaluated with probability {np.nanmedian(probability):.2f} ({median}); {likely}. Draws hold the coefficients' uncertainty, not the form's."


def equal_loss(outcome: Outcome) -> list[str]:
    """The design of the frontier that has the answer's loss and is lower in another objective: of equal losses the faster one is picked."""
    pick, front, problem = outcome.picks[0], outcome.frontier, outcome.study.problem
    if pick.answer is None or pick.question.vocabulary is not None:
        return []
    values, own = rounded(front.values), rounded(pick.answer.values)
    same = rounded(front.metrics["loss"]) == rounded(pick.answer.metrics["loss"])
    rows = np.flatnonzero(same & (values <= own).all(axis=1) & (values < own).any(axis=1))
    if not len(rows):
        return []
    row, lower = front[rows[:1]], np.flatnonzero(values[rows[0]] < own[0])
    taken = ", ".join(
        f"{name} {row.first[name]:.4g} for {pick.answer.first[name]:.4g} {unit_of(name, problem.scenario.figures)}".rstrip()
        for name in (front.objectives[at] for at in lower)
    )
    design = describe(problem.architectures(row.genotypes), problem.space.settings)
    return [f"The same loss takes {taken} with {design}: of equal losses the answer is that of least total_ms"]


def active_experts(outcome: Outcome) -> list[str]:
    """That the law itself keeps K low in the picks, else along the frontier; nothing where no objective is its loss."""
    problem, law = outcome.study.problem, outcome.study.problem.scenario.law
    if not set(outcome.frontier.objectives) & set(FROM_LOSS) - {metric.name for metric in problem.functions}:
        return []
    own = [p.answer.genotypes for p in outcome.picks if p.answer is not None and not p.question.baseline]
    picks = problem.architectures(np.concatenate(own)) if own else None
    lines = [] if picks is None else active_experts_lines(law, picks, "picks")
    frontier = problem.architectures(outcome.frontier.genotypes)
    return lines or active_experts_lines(law, frontier, "designs of the frontier")


def fit_lines(law: Law) -> list[str]:
    """The verdict of the law's own fit, and what must be said wherever it is used with its record beside it, where it has them."""
    verdict, beside = verdict_line(law), "; ".join(part for part in (law.caveat, record_line(law)) if part)
    return [*([verdict] if verdict else []), *([f"Law {law.name}: {beside}."] if law.caveat else [])]
