"""The answer of a study in three sentences: what to train, what it takes and what binds, which one change buys most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nas.answer import sureness
from nas.answer.changes import NOTHING, STEP, Change, Changes, changes_of
from nas.answer.design_words import describe_in_words, figure, figure_of
from nas.answer.device_times import PREFIX, TIMES, alike, device_times, limits, ranges_of_what, times_of
from nas.answer.outcome import Outcome, once
from nas.answer.sentences import devices_in_words, formats_in_words
from nas.exact.gains import DIFFERENT
from nas.exact.infeasibility import diagnosed
from nas.exact.solution import pick_of
from nas.problem.breakdown import operators
from nas.problem.diagnosis import Diagnosis, at_least
from nas.problem.evaluations import Evaluations
from nas.problem.law_caveats import leaves
from nas.problem.objective import OWN, Baseline, Budget, PickQuery
from nas.problem.picks import MARGIN, Pick, PickRule, keeping, kept, least_of
from nas.problem.problem import Problem
from nas.problem.quantiles import PHASES, measured_at, own_in_words
from nas.problem.uncertainty import FROM_LOSS, from_models, has_doubt
from nas.search.assembly import Study, under_preset
from objectives.engines import RUNS, TOP_1, engine_of
from objectives.loss_law.features import feature
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures

CHANGED = {
    "vocabulary": "a vocabulary of {:,.0f}",
    "format": "{}",
    "tokens": "training on {:,.3g} B tokens",
    "kernel": "a kernel of yours for {}",
}
WITH = {"vocabulary": " at equal text", "format": "", "tokens": ", twice the training"}
MEMORIES = ("memory_gb", "resident_gb")
LOSSLESS = 2.0  # bytes of a weight, from which a law's losses hold as they are
WAITS = {
    "compute": "the arithmetic peak",
    "memory": "memory bandwidth",
    "launch": "kernel launches",
    "epilogue": "epilogues",
    "constant": "fixed costs",
}


@dataclass(frozen=True)
class ThreeSentences:
    """What to train, what it takes, what buys most; of a study in which nothing fits: that, the closest miss, what opens a design."""

    train: str
    takes: str
    buys: str

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    @property
    def sentences(self) -> tuple[str, str, str]:
        """All three."""
        return self.train, self.takes, self.buys


@once  # a run's screen, files and page say the same
def three_sentences(outcome: Outcome) -> ThreeSentences | None:
    """The answer of a run, made once; None where nothing was evaluated that says anything."""
    problem, answer, there = outcome.study.problem, outcome.picks[0].answer, outcome.device_times[0]
    if outcome.diagnosis is not None:
        return nothing_fits(problem, outcome.diagnosis, whole=outcome.diagnosis_covers_space)
    if answer is None:
        return None
    there = {} if outcome.alike else there
    said = answer_of(problem, answer, outcome.changes, outcome.study.baselines, there, outcome.witnesses[0])
    return _with_margin(said, problem, answer, outcome.unsafe)


def solved_answer(study: Study, frontier: Evaluations) -> ThreeSentences | None:
    """The answer of a study whose whole space was solved for its frontier."""
    problem = study.problem
    rule = PickRule(None, least=least_of(frontier.objectives))
    row = pick_of(problem, rule)
    if row is None:
        return nothing_fits(problem, diagnosed(problem, frontier), whole=True)
    best = problem.evaluate(row.genotypes)  # with what is minimised
    pick = Pick(PickQuery(OWN, None), best)
    there = device_times(under_preset(study, "device"), pick)
    changes = changes_of(study, best, frontier, solved=True) if rule.least == "loss" else None
    (witness,) = sureness.of_picks(problem, study.baselines, [pick], frontier)
    there = {} if alike(problem, [(pick, there)]) else there
    unsafe = PickRule(None, least=rule.least, margin=False).answer(frontier)
    said = answer_of(problem, best, changes, study.baselines, there, witness)
    return _with_margin(said, problem, best, unsafe)


def _with_margin(
    said: ThreeSentences, problem: Problem, answer: Evaluations, unsafe: Evaluations | None
) -> ThreeSentences:
    return replace(said, takes=" ".join(filter(None, [said.takes, margin_line(problem, answer, unsafe)])))


def margin_line(problem: Problem, answer: Evaluations, unsafe: Evaluations | None) -> str:
    """`Keeps total_ms <= 500 in 4 of 5 cases, which costs 0.08 nats.`: against the pick without a margin; "" where none is known."""
    safe = [budget for budget in problem.budgets if kept([budget], answer.metrics)]
    if not safe or unsafe is None:
        return ""
    limits = " and ".join(map(str, safe))
    if not keeping(answer, answer.ok, safe, strict=True).all():
        return f"No design keeps {limits} in 4 of 5 cases; this one is within it as predicted."
    nats = answer.first["loss"] - unsafe.first["loss"]
    return f"Keeps {limits} in 4 of 5 cases, which costs {f'{nats:.2g} nats' if nats > NOTHING else 'no loss'}."


def answer_in_numbers(outcome: Outcome) -> dict[str, Any] | None:
    """The sentences as plain content, with what each change buys; None where there are none."""
    answer, changes = three_sentences(outcome), outcome.changes
    if answer is None:
        return None
    content: dict[str, Any] = {"sentences": list(answer.sentences)}
    if (own := outcome.picks[0].answer) is not None and outcome.unsafe is not None:
        content["margin_nats"] = own.first["loss"] - outcome.unsafe.first["loss"]
    if changes is None:
        return content
    tried = []
    for each in changes.tried:
        row = {name: value for name, value in vars(each).items() if name != "witness"}
        row["difference"] = None if each.difference is None else sureness.difference_in_numbers(each.difference)
        tried.append(row | ({} if each.witness is None else {"evidence": sureness.witness_in_numbers(each.witness)}))
    return content | {
        "binding": [budget.metric for budget in changes.binding],
        "changes": tried,
        "not_priced": list(changes.unpriced),
        "whole_memory": [budget.metric for budget in changes.whole_memory],
        "among": changes.among,
        "whole_space": changes.whole,
    }


def answer_of(
    problem: Problem,
    pick: Evaluations,
    changes: Changes | None,
    baselines: Sequence[Baseline] = (),
    on_device: Mapping[str, float] | None = None,
    witness: sureness.Witness | None = None,
) -> ThreeSentences:
    """The answer whose design is a pick, one row; `on_device`: its times under preset `device` where they are others, ms; `witness`: of it beside the first model."""
    chosen, m = problem.architectures(pick.genotypes), pick.first
    first = next(iter(from_models(problem.scenario.law, chosen, baselines[:1]).items()), None)
    beside = "" if first is None else f"; against {first[0]} trained alike {sureness.difference_in_words(first[1][0])}"
    beside += sureness.beside_evidence(witness) if beside else ""
    train, takes = _train(problem, chosen, m, beside), _takes(problem, chosen, m, changes, on_device or {})
    return ThreeSentences(train, takes, _buys(problem, m["loss"], changes))


def nothing_fits(problem: Problem, diagnosis: Diagnosis, *, whole: bool) -> ThreeSentences | None:
    """That nothing fits, the closest miss, and the one change that opens designs; None where no miss is at hand, or a design does fit."""
    nearest = diagnosis.closest
    if not len(nearest) or diagnosis.together <= 0.0:
        return None
    among = f"all {diagnosis.examined:,} designs" if whole else f"the {diagnosis.examined:,} evaluated designs"
    if diagnosis.outside is not None:
        ways = "Larger budgets, or " if diagnosis.inside or not whole else "Only "
        return _nothing_inside(problem, diagnosis.outside, among, ways)
    budgets = " and ".join(str(budget) for budget in problem.budgets)
    size, _ = describe_in_words(problem.architectures(nearest.genotypes[:1]), problem.space.settings)
    m, where = nearest.first, f"{devices_in_words(problem)}, {formats_in_words(problem)}"
    missed_first = sorted(problem.limits, key=lambda budget: m[budget.metric] <= budget.limit)
    took = ", ".join(figure_of(problem, b.metric, m[b.metric], b.limit) for b in missed_first)
    return ThreeSentences(
        f"Nothing fits: of {among} none is within {budgets}.",
        f"On {where}, {_request(problem)}the closest takes {took}: {size}, loss {m['loss']:.4f} nats (predicted).",
        _opening(diagnosis),
    )


def _nothing_inside(problem: Problem, nearest: Evaluations, among: str, ways: str) -> ThreeSentences:
    """That designs within the limits all lie outside of the law's evidence; the nearest of them, one row, and by what it leaves; `ways` beside allowing it."""
    design, law, m = problem.architectures(nearest.genotypes), problem.scenario.law, nearest.first
    size, rest = describe_in_words(design, problem.space.settings)
    budgets = " and ".join(str(budget) for budget in problem.limits) or "the space"
    took = ", ".join(figure_of(problem, b.metric, m[b.metric], b.limit) for b in problem.limits)
    which = f"{size}, {rest}{', which takes ' * bool(took)}{took}"
    return ThreeSentences(
        f"No design to recommend: of {among} none within {budgets} is inside what law {law.name} was fitted on.",
        f"The nearest outside: {which}; it leaves by {' and '.join(leaves(law, design))}.",
        f"{ways}--set outside=allow, which recommends designs that no training supports.",
    )


def _request(problem: Problem) -> str:
    """`for 1,024 tokens in and 16 out `; "" where each vocabulary makes its own number of tokens of a text."""
    scenario = problem.scenario
    own = scenario.text is not None and problem.space.own_heads
    return "" if own else f"for {scenario.input_tokens:,} tokens in and {scenario.output_tokens:,} out "


def _opening(diagnosis: Diagnosis) -> str:
    """The one change that opens designs: a smaller vocabulary, else the least relaxation of one budget."""
    ways = []
    if (smaller := diagnosis.vocabulary) is not None:
        opens = "" if smaller.opens is None else f" ({_designs(smaller.opens)})"
        ways.append(f"a vocabulary of {smaller.size:,} in place of {smaller.own:,} at equal text{opens}")
    alone = [(r.limit, r) for r in diagnosis.relaxations if r.limit is not None and r.limit > r.budget.limit]
    for limit, each in sorted(alone, key=lambda pair: pair[0] / pair[1].budget.limit):
        ways.append(f"{each.budget.metric} <= {each.budget.shown(limit, at_least(limit))} ({_designs(each.opens)})")
    if not ways:
        return f"No one change opens a design: every budget must rise, by {100.0 * diagnosis.together:.3g} % each."
    return f"One change opens designs: {', or '.join([f'{ways[0]}; or {ways[1]}', *ways[2:]] if ways[1:] else ways)}."


def _designs(number: int) -> str:
    return "1 design" if number == 1 else f"{number:,} designs"


def own_first(problem: Problem, m: Mapping[str, float]) -> str:
    """`board:energy_mj 12.3 mJ` where a pick has the least of that and not of the loss."""
    least = least_of([objective.name for objective in problem.objectives])
    return "" if least == "loss" else figure(problem, least, m[least])


def _train(problem: Problem, chosen: Architectures, m: Mapping[str, float], beside: str) -> str:
    size, rest = describe_in_words(chosen, problem.space.settings)
    law = problem.scenario.law
    outside = ", extrapolated" if law.extrapolates(chosen)[0] else "" if has_doubt(law) else ", error unknown"
    outside += ", as if in 16 bits" if is_rounded_free(problem, chosen) else ""
    predicted = f"loss {m['loss']:.4f} nats (predicted{outside}{_of_format(law, chosen)})"
    return f"Train {size}: {', '.join(filter(None, (own_first(problem, m), predicted, rest)))}{beside}."


def is_rounded_free(problem: Problem, chosen: Architectures) -> bool:
    """Whether a design's weights have fewer than 16 bits and its loss says nothing of that."""
    narrow = float(problem.pricing(chosen).precision.weight_bytes) < LOSSLESS
    return narrow and problem.scenario.law.precision_law is None


def _of_format(law: Law, chosen: Architectures) -> str:
    """What the format of a design costs in its loss, with the doubt; "" of one that costs nothing."""
    (own, _), *_ = chosen.in_formats()
    few = None if law.few_bits is None else replace(law.few_bits, precision=own or law.few_bits.precision)
    if few is None or (cost := few.penalty("")) is None:
        return ""
    ends, sparse = few.interval(chosen), chosen.n_experts > 1
    doubt = "error unknown" if ends is None else f"90 % {ends[0]:.2g} to {ends[1]:.2g}"
    nats = float(cost.nats(feature(chosen, "active_parameters"), sparse)[0])
    of_experts = ", as of a dense model: of experts nobody measured it" if sparse[0] else ""
    return f"; {few.precision} costs {nats:.4f} of it, {doubt}, by {few.law}{of_experts}"


def _takes(
    problem: Problem, chosen: Architectures, m: Mapping[str, float], changes: Changes | None, there: Mapping[str, float]
) -> str:
    scenario, limited, names = problem.scenario, limits(problem), minimised_or_limited(problem, m)
    where = problem.pricing(chosen).device.name if scenario.devices else devices_in_words(problem)
    where += "" if scenario.formats or scenario.devices else f", {formats_in_words(problem)}"
    figures = [figure_of(problem, name, m[name], limited.get(name)) for name in names]
    figures[0] += _ranges(problem, chosen, m)
    other = ", ".join(figure(problem, name, there[PREFIX + name]) for name in times_of(problem) if there)
    other = f" in this study's convention, {other} on the device (preset device)" if other else ""
    binding = "which budget binds was not computed" if changes is None else "no budget is reached"
    if budgets := [str(budget) for budget in reached(changes, m)]:
        binding = f"{' and '.join(budgets)} {'binds' if len(budgets) == 1 else 'bind'}"
    engines = engines_line(problem, chosen)
    taken = f"On {where}, it takes {', '.join(figures)}{other}; {binding}{_waits(problem, chosen, names[0])}."
    return f"{taken} {engines}" if engines else taken


def reached(changes: Changes | None, m: Mapping[str, float]) -> list[Budget]:
    """The budgets that hold a lower loss back and of which a design takes nine tenths, as predicted or in 4 of 5 cases."""
    binding = () if changes is None else changes.binding
    return [b for b in binding if max(m[b.metric], m.get(b.metric + MARGIN, 0.0)) >= (1.0 - STEP) * b.limit]


def engines_line(problem: Problem, chosen: Architectures) -> str:
    """`Runs as trained in vLLM; llama.cpp renormalises top-1 routing.`, of a stated engine that alone; "" where not all of a model is counted."""
    scenario = problem.pricing(chosen)
    if not scenario.complete:
        return ""
    written, stated = scenario.precision.name, engine_of(scenario.engine)
    if stated:
        return f"Runs as trained in {stated}." if stated in RUNS and not RUNS[stated].lacks(chosen, written) else ""
    if scenario.device.chip == "npu":
        return "Whether an engine of this NPU runs it is not known."
    lacking = {name: engine.lacks(chosen, written) for name, engine in RUNS.items()}
    able = [name for name, lack in lacking.items() if not lack]
    unable = [name for name, lack in lacking.items() if lack == TOP_1]
    runs = f"Runs as trained in {_listed(able)}" if able else f"No engine is known to run it as trained in {written}"
    verb = "renormalises" if len(unable) == 1 else "renormalise"
    return f"{runs}{f'; {_listed(unable)} {verb} {TOP_1}' if unable else ''}."


def _listed(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([*filter(None, [", ".join(names[:-1])]), *names[-1:]])


def minimised_or_limited(problem: Problem, m: Mapping[str, float]) -> list[str]:
    """Objectives and what has a limit, times first; the total time and the memory where nothing limits any."""
    asked = [*times_of(problem), *(o.name for o in problem.objectives), *limits(problem)]
    asked += [] if any(name in asked for name in MEMORIES) else ["memory_gb"]
    return [name for name in dict.fromkeys(asked) if name in m and name.partition("@")[0] not in FROM_LOSS]


def _ranges(problem: Problem, chosen: Architectures, m: Mapping[str, float]) -> str:
    """` (80 % of devices of its class: total 320 to 1,147 ms)` of the first time, and by which factors what is asked at a quantile."""
    scenario = problem.pricing(chosen)
    times = {name: m[name] for name in TIMES if name in m}
    said = [ranges_of_what(scenario, chosen, times, times_of(problem)[:1])]
    asked = dict.fromkeys([*limits(problem), *(o.name for o in problem.objectives)])
    said += [f"{name} is {own_in_words(name, scenario, chosen)}" for name in measured_at(asked)]
    return f" ({'; '.join(filter(None, said))})" if any(said) else ""


def _waits(problem: Problem, chosen: Architectures, metric: str) -> str:
    """`, and 71 % of the time goes to memory bandwidth`, of the phase that a metric is of; "" where no operators are priced."""
    phases = PHASES.get(metric.partition("@")[0], ())
    phase = phases[0] if len(phases) == 1 else None
    try:
        found = operators(problem, chosen)
    except ValueError:
        return ""
    rows = [row for name, of_phase in found.items() if phase in (None, name) for row in of_phase]
    spent = {kind: sum(row.ms_by_kind[kind] for row in rows) for kind in WAITS}
    if (total := sum(spent.values())) <= 0.0:
        return ""
    most = max(spent, key=spent.__getitem__)
    return f", and {100 * spent[most] / total:.0f} % of {'the time' if phase is None else phase} goes to {WAITS[most]}"


def _buys(problem: Problem, loss: float, changes: Changes | None) -> str:
    if changes is None and least_of([o.name for o in problem.objectives]) != "loss":
        return "What one change buys is computed for the loss alone, which is no objective here."
    if changes is None:
        return "What one change buys was not computed: in this space it would take more than seconds to solve."
    best, tried, full = changes.best, changes.tried, changes.whole_memory
    left = f"; {' and '.join(map(str, full))} {'is' if len(full) == 1 else 'are'} all there is" if full else ""
    left += f"; not priced: {', '.join(changes.unpriced)}" if changes.unpriced else ""
    among = f"all {changes.among:,} designs" if changes.whole else f"the {changes.among:,} evaluated designs"
    missed = f"This search missed loss {changes.loss:.4f} nats within your budgets (--algo exact finds it). "
    missed = missed if changes.loss < loss * (1.0 - DIFFERENT) else ""
    if not tried:
        return f"{missed}No one change is left to try{left.replace(';', ':', 1)}."
    if best is None:
        each = " nor ".join(changed(problem, change) for change in tried)
        beyond = "; beyond the evidence it is not known" if problem.fenced else ""
        return f"{missed}No one change lowers the loss among {among}: not {each}{beyond}{left}."
    gained = (
        f" ({_nats(problem, best)})"
        if best.difference is None
        else f", {sureness.difference_in_words(best.difference)}"
    )
    to = f"{WITH.get(best.kind, '')}, to loss {best.loss:.4f}{'*' * best.extrapolates}"
    others = [
        f"{changed(problem, each)} {_nats(problem, each)}{sureness.beside_evidence(each.witness, brief=True)}"
        for each in tried[1:]
    ]
    bought = f"{changed(problem, best)}{to}{gained}{sureness.beside_evidence(best.witness)}"
    further = f"; {', '.join(others)}" if others else ""
    return f"{missed}Of {among}, one change buys most: {bought}{further}{left}."


def _nats(problem: Problem, change: Change) -> str:
    if change.nats > NOTHING:
        return f"{-change.nats:+.2g} nats"
    return "not known" if problem.fenced else "nothing"


def changed(problem: Problem, change: Change) -> str:
    """`total_ms <= 550`, `a vocabulary of 32,000`: what one change is."""
    if change.kind == "budget":
        budget = next(each for each in problem.budgets if each.metric == change.name)
        return str(replace(budget, limit=float(change.at)))
    at = float(change.at) / 1e9 if change.kind == "tokens" else change.at
    return CHANGED[change.kind].format(at)
