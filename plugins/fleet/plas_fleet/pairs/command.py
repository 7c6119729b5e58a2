"""The work of `pairs`: targets and drafts solved together, shown and written."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nas.answer.design_words import describe
from nas.answer.sentences import hardware, law_in_head
from nas.answer.sureness import beside_evidence, difference_in_words, witnesses
from nas.errors import InfeasibleError, UsageError
from nas.files import yaml_source
from nas.files.tables import csv_text, refuse_used, write, write_json
from nas.problem.uncertainty import differences, has_doubt
from nas.search.assembly import Study, assemble
from nas.study.layers import layered
from nas.terminal.console import Stages, notice, say, say_json
from nas.terminal.tables import table
from plas_fleet.pairs.question import SAME, pair_problem
from plas_fleet.pairs.request import PairsRequest
from plas_fleet.pairs.rows import Pairs
from plas_fleet.pairs.solution import PairProblem, PairSolution, solve_pairs
from plas_fleet.pairs.tables import Answered, answered, columns_of, shown_rows, shown_table, speed_ups


def choose_pairs(request: PairsRequest) -> None:
    """Solve, write, print.

    Raises:
        UsageError: what cannot be asked.
        InfeasibleError: neither a pair nor a target alone fits.
    """
    if request.out is not None:
        refuse_used("--out", request.out)
    study, drafts = _studies(request)
    problem = pair_problem(study, drafts, request.acceptance, request.drafted)
    if not request.quiet:
        for text in dict.fromkeys((*study.notices, *_notices(problem))):
            notice(f"Warning: {text}")
    stage = Stages(quiet=request.quiet)
    found = solve_pairs(problem, stage)
    stage.close()
    if len(found.both) == 0:
        raise InfeasibleError(
            "pairs: neither a pair nor a target alone is within the budgets; relax one, plas run names which"
        )
    answer = answered(problem, found)
    if request.out is not None:
        _keep(request.out, study, drafts, problem, found, answer)
    if request.json:
        say_json(_in_numbers(problem, found, answer, request.out))
    elif not request.quiet:
        _show(request, study, problem, found, answer)


def _studies(request: PairsRequest) -> tuple[Study, Study]:
    """The study of targets and the same over the space of drafts."""
    study = assemble(*layered(request.flags, request.settings, request.config))
    if request.draft_space == SAME:
        return study, study
    flags = {**request.flags, "space": request.draft_space}
    try:
        return study, assemble(*layered(flags, request.settings, request.config))
    except UsageError as error:
        raise UsageError(f"draft-space: {error}") from None


def _notices(problem: PairProblem) -> Iterator[str]:
    """What makes pairs doubtful before any is solved."""
    if not problem.targets.has_head:
        yield (
            "vocabulary: 0 leaves out the LM head, which is most of what a draft costs; add --vocabulary, or take --preset device"
        )
    if problem.acceptance.constant:
        yield "acceptance: one number for every draft makes the smallest the best; measure two drafts of different size"


def _show(request: PairsRequest, study: Study, problem: PairProblem, found: PairSolution, answer: Answered) -> None:
    for line in (*_head(study, problem), ""):
        say(line)
    table(*shown_table(problem, found, answer, shown_rows(found.both, request.shown)), below=("target", "draft"))
    for line in ("", *_verdict(problem, answer), *_proof(problem, found)):
        say(line)
    if request.out is not None:
        say(f"Files: {request.out}/ (frontier.csv, pairs.csv, alone.csv, summary.json, config.yaml)")


def _head(study: Study, problem: PairProblem) -> Iterator[str]:
    targets, drafts = problem.targets, problem.drafts
    yield (
        f"Pairs: targets of {targets.space.name} space, {targets.space.size:,}; drafts of {drafts.space.name} space, "
        f"{drafts.space.size:,}; {', '.join(map(str, problem.drafted))} tokens drafted in a step"
    )
    yield hardware(targets, study.config, study.calibration_note)
    limits = ", ".join(map(str, targets.budgets))
    asked = ", ".join(o.name for o in targets.objectives)
    yield f"Minimise {asked}{'; ' * bool(limits)}{limits}; {study.config.request_words}, batch {study.config.batch}, vocabulary {targets.vocabulary:,}"
    yield f"Acceptance of a draft's first token{acceptance_in_words(problem)}"
    yield law_in_head(targets.scenario.law)


def acceptance_in_words(problem: PairProblem) -> str:
    """`: 0.7 of every draft`, or by perplexity as stated."""
    points = problem.acceptance.points
    if problem.acceptance.constant:
        return f": {points[0][1]:g} of every draft, as stated"
    said = ", ".join(f"{share:g} at {x:.3g}" for x, share in points)
    return f" by its perplexity: {said}, affine between, as stated; no better than the best, the line goes on beyond the last"


def _verdict(problem: PairProblem, answer: Answered) -> Iterator[str]:
    """The pick among pairs against that among targets alone; whether pairs win anywhere."""
    pair, alone = answer.pair, answer.alone
    if pair is None:
        yield "No pair is within the budgets: a target alone is the answer"
        return
    yield (
        f"Pair of the lowest loss within your budgets: {pair.metrics['loss'][0]:.4f} nats, {describe(answer.targets_of(pair))}; "
        f"draft {describe(answer.drafts_of(pair))}, drafted in a step {pair.drafted[0]}, first token accepted {pair.first[0]:.2f}; "
        f"{speed_ups(problem, pair)[0][0]:.2f} times as fast as its target alone"
    )
    if alone is None:
        yield "No target alone is within the budgets"
        return
    yield f"Target alone of the lowest loss: {alone.metrics['loss'][0]:.4f} nats, {describe(answer.targets_of(alone))}"
    yield f"The pair against the target alone: {_apart(problem, answer, pair, alone)}"
    yield from _along(problem, answer)


def _apart(problem: PairProblem, answer: Answered, pair: Pairs, alone: Pairs) -> str:
    """Their difference in loss, with how sure the law is of it."""
    law, nats = problem.targets.scenario.law, float(pair.metrics["loss"][0] - alone.metrics["loss"][0])
    both = answer.targets_of(pair), answer.targets_of(alone)
    said = difference_in_words(differences(law, *both)[0][0]) if nats and has_doubt(law) else f"{nats:+.4f} nats"
    return said + (beside_evidence(witnesses(law, *both)[0]) if nats else "")


def _along(problem: PairProblem, answer: Answered) -> Iterator[str]:
    """On how much of the frontier pairs stand, by how many nats at most, and how many of them rest on what nobody measured."""
    gains = answer.gains[answer.is_pair]
    finite = gains[np.isfinite(gains)]
    best = f"; at costs that a target alone also has by up to {finite.max():.4f} nats" if len(finite) else ""
    yield f"Of the joint frontier's {len(answer.is_pair):,} members {len(gains):,} are pairs{best}"
    if answer.beyond:
        yield f"Of these pairs {answer.beyond:,} have drafts better or worse than all whose acceptance you stated"
    if answer.outside:
        yield f"Of these pairs {answer.outside:,} have drafts outside of what law {problem.targets.scenario.law.name} was fitted on: their perplexity is extrapolated"


def _proof(problem: PairProblem, found: PairSolution) -> Iterator[str]:
    yield (
        f"Exact: the frontier of all {found.considered:,} pairs and {problem.targets.space.size:,} targets alone, given this acceptance; from "
        f"{found.composed:,} pairs of models that none beats. All {len(found.pairs):,} pairs of the frontier were priced whole: sums "
        f"differ by at most {found.difference:.0e} of the value"
    )


def _keep(
    folder: Path, study: Study, drafts: Study, problem: PairProblem, found: PairSolution, answer: Answered
) -> None:
    """Tables of both frontiers and of targets alone, the numbers of the answer, the study."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("frontier", found.both), ("pairs", found.pairs), ("alone", found.alone)):
        gains = {"nats_below_alone": answer.gains} if name == "frontier" else {}
        write(folder / f"{name}.csv", csv_text({**columns_of(problem, rows), **gains}))
    write_json(folder / "summary.json", _in_numbers(problem, found, answer, folder))
    write(folder / "config.yaml", yaml_source.dump(study.resolved()))
    write(folder / "drafts.yaml", yaml_source.dump(drafts.problem.space.mapping()))


def _in_numbers(problem: PairProblem, found: PairSolution, answer: Answered, folder: Path | None) -> dict[str, object]:
    picks = {
        name: None if rows is None else {key: column.tolist()[0] for key, column in columns_of(problem, rows).items()}
        for name, rows in (("pair", answer.pair), ("alone", answer.alone))
    }
    loss = [None if rows is None else float(rows.metrics["loss"][0]) for rows in (answer.pair, answer.alone)]
    frontier = columns_of(problem, found.both)
    rows = [dict(zip(frontier, row, strict=True)) for row in zip(*(c.tolist() for c in frontier.values()), strict=True)]
    return {
        **({} if folder is None else {"folder": str(folder)}),
        "acceptance": [list(point) for point in problem.acceptance.points],
        "drafted": list(problem.drafted),
        "considered": found.considered,
        "composed": found.composed,
        "difference": found.difference,
        "pick": picks,
        "nats": None if None in loss else loss[0] - loss[1],  # type: ignore[operator]
        "frontier": rows,
    }
