"""What a prior of other laboratories' trainings is worth in rows: 8 own rows on top of it against 24 without.

    python -m studies.own_rows [--published NAME=FILE ...] [--seeds 10] [--only "Step Law"]

It needs plugins/evidence, whose tables it reads. Each table of the evidence base, and each published file that is named, is the user's in turn. The prior is the population of the laboratories that are
not the table's (`studies.evidence.population`), drawn and read back as `fit --prior` reads it; 8 random rows update it. Without it the same 8, and 24
with them among them, are fitted by the same form with a weak prior, and the 24 by the form that BIC selects of those that `plas fit` fits. Judged on all rows
beyond the 24: rms error of differences of two rows of one group, and of losses where the group was seen, nats of the table; means over seeds.
Of the prior with 8 rows also which share of these differences, and of the losses of the group with the most rows, its 90 % intervals hold.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from plas_evidence.tables import GroupedTable, base, published

from nas.study.catalogue import load_law
from objectives.loss_law.draws import probability_below
from objectives.loss_law.form import named_form
from objectives.plugins import importable
from plas_fit.evidence.joint_form import MOST_EPOCHS, Trainings
from plas_fit.evidence.posterior import Belief, Posterior, posterior, prior_of
from plas_fit.evidence.posterior import predicted as losses_of
from plas_fit.fitting.estimate import Method, fitted
from plas_fit.fitting.trained_models import Table
from plas_fit.fitting.validation import form_weights
from search_spaces.arrays import AnyArray, FloatArray, IntArray
from studies.evidence.population import CENTRE, CENTRE_SD, law_of, population

FEW, MANY, LEAST_JUDGED = 8, 24, 8
MOST_PAIRS = 1_000  # of a table, for coverage
WEAK = 3.0  # sds of the weak prior over those of the population's own prior
LEVEL, LEVEL_SD = 3.0, 3.0
STARTS = 8
COLUMNS = ("prior alone", "prior, 8 rows", "weak prior, 8 rows", "weak prior, 24 rows", "plas fit, 24 rows")


@dataclass(frozen=True, eq=False)
class User:
    """A table that plays the user's: as the joint form reads it, and as `plas fit` does."""

    rows: Trainings
    table: Table


@dataclass(frozen=True)
class Errors:
    """Rms error of differences, and of losses, nats; shares of them that 90 % intervals hold."""

    differences: float
    losses: float
    held_differences: float = np.nan
    held_losses: float = np.nan


def users(files: Sequence[str]) -> list[User]:
    """Every table of the base, and published ones, without rows that read their text more often than counts as new."""
    return [_user(each) for each in (*base(), *published(files))]


def _user(source: GroupedTable) -> User:
    every = np.ones(len(source.table), dtype=bool)
    keep = np.flatnonzero(every if source.epochs is None else source.epochs <= MOST_EPOCHS)
    return User(source.trainings[keep], source.table[keep])


def prior_without(laboratory: str, tables: Sequence[User]) -> Belief:
    """What the other laboratories' trainings say, as `fit --prior` reads it of their law."""
    widening = float(load_law("evidence").provenance["widening"])
    others = [each.rows for each in tables if each.rows.laboratory != laboratory]
    return prior_of(law_of(population(others), widening, others))


def weak_prior(scale: float) -> Belief:
    """The form with hardly any prior."""
    covariance = np.diag(np.append(WEAK * CENTRE_SD, LEVEL_SD) ** 2)
    return Belief(np.append(CENTRE, LEVEL), covariance, scale, covariance)


def by_prior(prior: Belief, user: User, seen: IntArray, judged: IntArray) -> Errors:
    """Errors of the joint form on rows, with what the seen ones make of a prior."""
    rows = user.rows
    found = posterior(prior, rows[seen]) if len(seen) else None
    belief = prior if found is None else found.belief
    of = rows.of[judged]
    predicted = rows.per * (belief.losses(of) - belief.mean[-1])
    if found is not None:
        at = dict(zip(np.unique(rows.group[seen]).tolist(), found.at_reference.tolist(), strict=True))
        predicted = predicted + rows.per * np.array([at.get(each, np.nan) for each in rows.group[judged].tolist()])
        unseen = np.isnan(predicted)
        predicted[unseen] = rows.per * belief.losses(of)[unseen]
    known = errors(predicted, rows.loss[judged], rows.group[judged], np.isin(rows.group[judged], rows.group[seen]))
    return known if found is None else replace(known, **held(found, rows[judged]))


def held(found: Posterior, judged: Trainings) -> dict[str, float]:
    """The shares of differences, and of losses of the main group, that 90 % intervals hold, of the belief as it is doubted."""
    belief = found.belief.doubted
    draws, true, scale = losses_of(belief.drawn(), judged.of), judged.loss / judged.per, belief.scale
    first, second = np.triu_indices(len(true), 1)
    pairs = np.flatnonzero(judged.group[first] == judged.group[second])
    pairs = pairs[np.unique(np.linspace(0, len(pairs) - 1, MOST_PAIRS).astype(np.int64))] if len(pairs) else pairs
    first, second, main = first[pairs], second[pairs], judged.group == found.main
    of_pairs = probability_below(draws[:, first] - draws[:, second], scale, true[first] - true[second])
    of_losses = probability_below(draws[:, main], scale / np.sqrt(2.0), true[main])
    shares = [np.abs(each - 0.5) <= 0.45 for each in (of_pairs, of_losses)]
    return {
        name: float(each.mean()) if len(each) else np.nan
        for name, each in zip(("held_differences", "held_losses"), shares, strict=True)
    }


def by_fit(user: User, seen: IntArray, judged: IntArray) -> Errors:
    """Errors of the form that BIC selects among those that `plas fit` fits to the seen rows."""
    found = {}
    for name in importable("objectives.law_forms"):
        if named_form(name).fitted:
            try:
                found[name] = fitted(name, named_form(name), user.table[seen], Method(None, STARTS, 0, {}))
            except ValueError:
                continue
    if not found:
        return Errors(np.nan, np.nan)
    weights = form_weights(next(iter(found.values())), found)
    best = found[max(weights, key=lambda name: weights[name])]
    form, table = best.model.form, user.table[judged]
    predicted = form.loss(sum(form.values(table.feature, dict(best.coefficients)).values(), np.zeros(len(table))))
    group = user.rows.group
    return errors(predicted, table.loss, group[judged], np.isin(group[judged], group[seen]))


def errors(predicted: FloatArray, loss: FloatArray, group: IntArray, known: AnyArray) -> Errors:
    """Rms over pairs of one group, and over rows whose group was seen."""
    off, squares, pairs = predicted - loss, 0.0, 0
    for each in np.unique(group):
        own = off[group == each]
        squares += len(own) * float(((own - own.mean()) ** 2).sum())
        pairs += len(own) * (len(own) - 1) // 2
    return Errors(
        float(np.sqrt(squares / pairs)) if pairs else np.nan,
        float(np.sqrt((off[known] ** 2).mean())) if known.any() else np.nan,
    )


def judged_tables(tables: Sequence[User], seeds: int, only: str = "") -> Iterator[tuple[User, list[list[Errors]]]]:
    """Each table that has rows enough, and by seed the errors of every column."""
    priors: dict[str, Belief] = {}
    for user in tables:
        if len(user.table) < MANY + LEAST_JUDGED or (only and user.rows.name != only):
            continue
        laboratory = user.rows.laboratory
        if laboratory not in priors:
            priors[laboratory] = prior_without(laboratory, tables)
        yield user, [_of_seed(priors[laboratory], user, seed) for seed in range(seeds)]


def _of_seed(prior: Belief, user: User, seed: int) -> list[Errors]:
    order = np.random.default_rng(seed).permutation(len(user.table))
    few, many, judged = order[:FEW], order[:MANY], order[MANY:]
    return [
        by_prior(prior, user, order[:0], judged),
        by_prior(prior, user, few, judged),
        by_prior(weak_prior(prior.scale), user, few, judged),
        by_prior(weak_prior(prior.scale), user, many, judged),
        by_fit(user, many, judged),
    ]


def report(found: Sequence[tuple[User, list[list[Errors]]]], print_line: Callable[[str], None]) -> None:
    """The tables in Markdown, and in how many the prior with few rows is at least as good."""
    for what in ("differences", "losses"):
        means = {
            user.rows.name: [_mean([getattr(row[i], what) for row in rows]) for i in range(len(COLUMNS))]
            for user, rows in found
        }
        print_line(f"\nRms error of {what}, nats\n\n| table | {' | '.join(COLUMNS)} |\n|---|{'---|' * len(COLUMNS)}")
        for name, values in means.items():
            print_line(f"| {name} | " + " | ".join(f"{value:.4f}" for value in values) + " |")
        for place in range(2, len(COLUMNS)):
            won = sum(values[1] <= values[place] for values in means.values())
            print_line(f"\n{COLUMNS[1]} at most {COLUMNS[place]}: in {won} of {len(means)} tables")
    for what in ("held_differences", "held_losses"):
        shares = [_mean([getattr(row[1], what) for row in rows]) for _, rows in found]
        print_line(
            f"\n{what}, {COLUMNS[1]}, 90 % intervals: {100 * _mean(shares):.1f} %, mean over {len(shares)} tables"
        )


def _mean(values: Sequence[float]) -> float:
    """The mean of what is known."""
    known = np.array(values)[np.isfinite(values)]
    return float(known.mean()) if len(known) else np.nan


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--published", action="append", default=[])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    report([*judged_tables(users(given.published), given.seeds, given.only)], lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()
