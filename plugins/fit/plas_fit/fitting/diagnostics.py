"""What a fit may be trusted for: quality, noise, lack of fit, identifiability, influence."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import brentq
from scipy.stats import f as fisher
from scipy.stats import ncf

from plas_fit.fitting.columns import BESIDE
from plas_fit.fitting.estimate import Fit
from plas_fit.fitting.intervals import Intervals, correlation_of
from plas_fit.fitting.kept_rows import keeping, kinds_in
from plas_fit.fitting.robust import scale_of
from plas_fit.fitting.trained_models import Table
from search_spaces.arrays import AnyArray, FloatArray

FACTORS = (
    *("depth", "width", "ffn_ratio", "activation_rate", "kv_dim", "query_dim", "tokens"),
    *("parameters", "active_parameters"),
)
SIGNIFICANT = 2.0  # |value| / standard error below which a coefficient is called not identifiable
ALIKE = 0.95
REPEATS = 0.02  # nats: sd of repeats in public tables, at most
SWEEP = 0.05  # nats: sd within designs from which rows are no repeats
OUTLIER = 4.0  # robust residual sds
ROUNDING = 1e-12  # of the losses: smaller residuals are none
SPARE = 4  # residual degrees of freedom that a lack-of-fit test must leave
WINSOR = 3.0
REJECT = 0.01  # p below which lack of fit is called
POWER = 0.8
ONE_SIZE = 0.01  # of a size's squares in logarithms that are left within kinds that name architectures
SHARE = 0.2  # of the residuals' squares that kinds of rows must explain to be called
NOTHING = 1e-7  # contribution in nats that counts as zero


def factors(table: Table) -> tuple[str, ...]:
    """Quantities that vary in a table, none of them a consequence of the others."""
    found = [name for name in FACTORS if name in table.levels]
    whole = {"depth", "width"} & set(found)
    return tuple(name for name in found if not (whole and name in ("parameters", "active_parameters")))


def losses(fit: Fit, predicted: FloatArray) -> FloatArray:
    """Predictions in nats from those in the scale of the residuals."""
    return np.exp(predicted) if fit.model.form.residuals == "log_loss" else predicted


def quality(fit: Fit) -> dict[str, float]:
    """R² and errors in nats; AIC and BIC of normal residuals in the fit's own scale."""
    error = losses(fit, fit.predicted) - fit.table.loss
    n, p = fit.model.n, len(fit.vector) + 1
    spread = float(((fit.table.loss - fit.table.loss.mean()) ** 2).sum())
    squares = max(float((fit.residuals**2).mean()), 1e-300)
    deviance = n * np.log(squares) + (
        2.0 * float(np.log(fit.table.loss).sum()) if fit.model.form.residuals == "log_loss" else 0.0
    )
    return {
        "r2": 1.0 - float(error @ error) / max(spread, 1e-300),
        "rmse": float(np.sqrt((error**2).mean())),
        "mae": float(np.abs(error).mean()),
        "largest": float(np.abs(error).max()),
        "residual_sd": float(np.sqrt(error @ error / max(n - len(fit.vector), 1))),
        "robust_sd": scale_of(error, len(fit.vector)),
        "aic": deviance + 2.0 * p,
        "bic": deviance + float(np.log(n)) * p,
    }


def replicates(table: Table) -> dict[str, float] | None:
    """Noise from rows of one design: its sd, degrees of freedom, and the R² of the right law under such noise; copies of a row count once.

    Checkpoints of one run are none: only rows of equal progress are compared.
    """
    own = np.stack([table.design.astype(float), table.numbers.get("checkpoint", np.zeros(len(table)))])
    rows = np.unique(np.stack([np.unique(own, axis=1, return_inverse=True)[1].reshape(-1), table.loss]), axis=1)
    design, loss = rows[0].astype(np.int64), rows[1]
    counts = np.bincount(design)
    freedom = int((counts - 1)[counts > 1].sum())
    if freedom == 0:
        return None
    means = np.bincount(design, loss) / np.maximum(counts, 1)
    squares = float(((loss - means[design]) ** 2).sum())
    variance = squares / freedom
    total = float(table.loss.var(ddof=1))
    return {
        "designs": int((counts > 1).sum()),
        "freedom": freedom,
        "sd": float(np.sqrt(variance)),
        "ceiling_r2": max(1.0 - variance / total, 0.0),
    }


def sweep(table: Table) -> str | None:
    """What says that rows of one design are a sweep, and the flag that keeps its best; None where they differ no more than repeats do."""
    noise = replicates(table)
    if noise is None or noise["sd"] < SWEEP:
        return None
    design = table.design
    varying = [name for name in BESIDE if name in table.numbers and _varies_within(table.numbers[name], design)]
    rows = int((np.bincount(design)[design] > 1).sum())
    said = (
        f"this looks like a sweep: {rows} of {len(table)} rows share all that is read with others, and differ from these by {noise['sd']:.2g} nats "
        f"(sd; repeats with other seeds usually by less than {REPEATS:g}): its best runs are to be fitted, not all; "
    )
    kinds = [name for name, kind in kinds_in(table.beside).items() if _varies_within(kind, design)]
    if set(varying) <= {"seed"} and kinds:
        return (
            f"rows of one design differ by {noise['sd']:.2g} nats (sd, {rows} of {len(table)} rows; repeats with other seeds usually by less than "
            f"{REPEATS:g}), and in {', '.join(kinds)}, which no law reads: {keeping(kinds[0], table.beside[kinds[0]])}"
        )
    if set(varying) <= {"seed"}:
        return said + "--best-of A,B keeps the lowest loss of each design, A and B being the columns that were swept"
    return said + f"--best-of {','.join(varying)} keeps the lowest loss of each design"


def _varies_within(column: FloatArray, design: AnyArray) -> bool:
    """Whether a column differs among rows of one design."""
    order = np.lexsort((column, design))
    return bool(((np.diff(column[order]) != 0) & (np.diff(design[order]) == 0)).any())


@dataclass(frozen=True)
class LackOfFit:
    """F test of what quadratic terms in the logarithms of the factors still explain.

    visible: root mean square of a misfit that the test calls in four of five tables like this one, nats.
    """

    f: float
    p_value: float
    terms: int
    freedom: int
    visible: float


def lack_of_fit(fit: Fit) -> LackOfFit | None:
    """Whether residuals have a shape; None with too few rows.

    Residuals beyond 3 robust sds are pulled in to there, so that an outlier does not hide a shape.
    """
    extra, left = quadratic(fit.table), Unexplained.of(fit)
    while extra.shape[1]:
        if (found := left.by(extra)) is not None:
            nats = float(np.median(fit.table.loss)) if fit.model.logarithmic else 1.0
            noise = np.sqrt(found.after / found.freedom) * nats
            visible = float(noise) * np.sqrt(noncentrality(found.terms, found.freedom) / fit.model.n)
            return LackOfFit(found.f, found.p_value, found.terms, found.freedom, float(visible))
        extra = extra[:, : extra.shape[1] // 2]
    return None


@dataclass(frozen=True)
class Explained:
    """What further columns explain of a fit's residuals: sums of squares before and after, and the F test of their difference."""

    before: float
    after: float
    terms: int
    freedom: int

    @property
    def f(self) -> float:
        """F of the further columns."""
        return (self.before - self.after) / self.terms / max(self.after / self.freedom, 1e-300)

    @property
    def p_value(self) -> float:
        """Probability of such an F where they explain nothing."""
        return float(fisher.sf(self.f, self.terms, self.freedom))


@dataclass(frozen=True, eq=False)
class Unexplained:
    """What a fit leaves: winsorised residuals (n,) times the roots of the rows' weights, and a basis of what its coefficients reach, (n, p)."""

    residual: FloatArray
    reached: FloatArray
    root: FloatArray

    @classmethod
    def of(cls, fit: Fit) -> Self:
        """Those of a fit."""
        root = np.sqrt(fit.model.weight)
        _, jacobian = fit.model.derivatives(fit.vector[None])
        limit = WINSOR * scale_of(fit.residuals, len(fit.vector))
        residual = np.clip(fit.residuals, -limit, limit) * root
        moving = (
            np.abs(fit.vector - fit.model.low) > NOTHING
        )  # a term at zero explains nothing, whatever its exponents happen to be
        small = basis(jacobian[0][moving].T * root[:, None])
        return cls(residual, small, root)

    def by(self, extra: FloatArray) -> Explained | None:
        """What columns (n, terms) explain beyond the coefficients; None with too few rows, or where it is nothing new."""
        residual, small = self.residual, self.reached
        large = basis(np.hstack([small, extra * self.root[:, None]]))
        terms, freedom = large.shape[1] - small.shape[1], len(residual) - large.shape[1]
        if freedom < SPARE or not terms:
            return None
        before, after = (float(residual @ residual - ((part.T @ residual) ** 2).sum()) for part in (small, large))
        return Explained(before, after, terms, freedom)


def mixture(fit: Fit) -> str | None:
    """What says that rows are of several kinds that no law tells apart, as of two data sets, and the flag that keeps one; None where none is seen.

    Of the columns that no law reads, the one whose kinds explain most of the residuals, if that is a fifth or more (p < 0.01
    over all columns tried). Columns that name architectures are none, nor is anything told of checkpoints, whose residuals are no
    independent ones.
    """
    table = fit.table
    kinds = {name: kind for name, kind in kinds_in(table.beside).items() if not _names_architectures(kind, table)}
    if "checkpoint" in table.numbers or not kinds:
        return None
    left = Unexplained.of(fit)
    tried = {name: left.by(np.eye(int(kind.max()) + 1)[kind]) for name, kind in kinds.items()}
    known = {name: found for name, found in tried.items() if found is not None}
    called = {
        name: 1.0 - found.after / found.before
        for name, found in known.items()
        if found.p_value < REJECT / len(known) and found.after <= (1.0 - SHARE) * found.before
    }
    if not called:
        return None
    name = max(called, key=called.__getitem__)
    return (
        f"these rows are of several kinds: residuals differ by {name} (F {known[name].f:.3g} on {known[name].terms} and {known[name].freedom} "
        f"degrees of freedom), {_from_to(fit, table.beside[name], kinds[name])}, and no law reads it: the coefficients are of none of "
        f"them; {keeping(name, table.beside[name])}"
    )


def _names_architectures(kind: AnyArray, table: Table) -> bool:
    """Whether rows of one kind are of nearly one size in every quantity but tokens, as of a column of models' names, maybe rounded."""
    logs = [np.log(table.feature(name)) for name in factors(table) if name != "tokens"]
    counts = np.bincount(kind)
    return bool(logs) and all(
        float(((log - (np.bincount(kind, log) / counts)[kind]) ** 2).sum()) < ONE_SIZE * len(log) * float(log.var())
        for log in logs
    )


def _from_to(fit: Fit, cells: AnyArray, kind: AnyArray) -> str:
    """The kinds whose residuals are lowest and highest in the mean, nats, with their rows."""
    counts = np.bincount(kind)
    means = np.bincount(kind, fit.table.loss - losses(fit, fit.predicted)) / counts
    said = [
        f"{str(cells[kind == at][0]) or '(empty)'} {means[at]:+.2g} nats in the mean ({counts[at]} rows)"
        for at in (int(means.argmin()), int(means.argmax()))
    ]
    return f"from {said[0]} to {said[1]}"


def noncentrality(terms: int, freedom: int) -> float:
    """λ of a non-central F that exceeds the test's limit with probability `POWER`."""
    limit, high = fisher.isf(REJECT, terms, freedom), 1.0
    while ncf.sf(limit, terms, freedom, high) < POWER:
        high *= 2.0
    return float(brentq(lambda at: ncf.sf(limit, terms, freedom, at) - POWER, 0.0, high))


def quadratic(table: Table) -> FloatArray:
    """1, logarithms of the factors, their squares and products, (n, terms), standardised."""
    logs = [np.log(table.feature(name)) for name in factors(table)]
    logs = [(column - column.mean()) / max(float(column.std()), 1e-300) for column in logs]
    squares = [column * column for column in logs]
    products = [a * b for i, a in enumerate(logs) for b in logs[i + 1 :]]
    return np.stack([np.ones(len(table)), *logs, *squares, *products], axis=1)


def basis(matrix: FloatArray) -> FloatArray:
    """Orthonormal columns that span a matrix's."""
    scaled = matrix / np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
    left, singular, _ = np.linalg.svd(scaled, full_matrices=False)
    found: FloatArray = left[:, singular > 1e-9 * singular[0]]
    return found


def identifiability(fit: Fit, known: Intervals) -> list[str]:
    """What the data cannot tell, a line each: weak coefficients, flat terms, bounds."""
    model, said = fit.model, _together(known, fit)
    sd = np.sqrt(np.diag(known.covariance))
    for name, value, error in zip(model.form.coefficients, fit.coefficients.values(), sd, strict=True):
        if name in model.fixed or (name in model.names and known.held[model.names.index(name)]):
            continue
        if abs(value) < SIGNIFICANT * error and name not in model.form.scales:
            said.append(f"{name} is not identifiable: {value:.3g} with standard error {error:.2g}")
    spans = np.ptp(fit.vector[: model.count, None] * model.terms(fit.vector[None, model.count :])[0], axis=1)
    for i, (name, term) in enumerate(model.form.terms.items()):
        scale = 1.0 if model.form.of == model.form.residuals else float(np.median(fit.table.loss))
        if term.features and 0 < spans[i] < fit.residual_sd * scale:
            said.append(
                f"term {name} is weak: it spans {spans[i]:.2g} in the data, the residual sd is {fit.residual_sd * scale:.2g}"
            )
        if abs(fit.vector[i] - model.low[i]) <= NOTHING:
            said.append(f"term {name} is zero, its bound")
        elif abs(fit.vector[i]) < SIGNIFICANT * known.sd[i]:
            said.append(
                f"term {name} is not identifiable: {fit.vector[i]:.3g} at the reference design with standard error {known.sd[i]:.2g}"
            )
    return said + [_held(fit, i) for i in np.flatnonzero(known.held).tolist()]


def determined(fit: Fit, known: Intervals) -> dict[str, bool]:
    """Whether the rows determine each coefficient that was fitted: not only together with others, and at least two standard errors from zero.

    Of a scale this is its term's contribution at the reference design. A constant beside coefficients that are all undetermined is
    the mean of the rows alone, and none either.
    """
    sizes = np.abs(fit.vector) >= np.maximum(SIGNIFICANT * known.sd, NOTHING)
    found = {
        name: bool(large and not held and not together)
        for name, large, held, together in zip(fit.model.names, sizes, known.held, known.together, strict=True)
    }
    constants = {term.scale for term in fit.model.form.terms.values() if not term.powers}
    others = [sure for name, sure in found.items() if name not in constants]
    return found if any(others) or not others else dict.fromkeys(found, False)


def _together(known: Intervals, fit: Fit) -> list[str]:
    """Coefficients that can all change without a change of any row's prediction, in a line; none where there are none."""
    names = [name for name, each in zip(fit.model.names, known.together, strict=True) if each]
    if not names:
        return []
    return [
        f"{', '.join(names)} are not determined: these rows tell a combination of them alone (condition number {known.condition:.2g}); choose a form without one of their terms"
    ]


def _held(fit: Fit, i: int) -> str:
    name, value = fit.model.names[i], fit.vector[i]
    if value in (fit.model.low[i], fit.model.high[i]):
        return f"{name} lies at its bound {value:.3g}"
    return f"{name} has no effect: its term is zero in this fit"


def alike(fit: Fit, known: Intervals) -> list[tuple[str, str, float]]:
    """Pairs of the file's coefficients whose estimates move together."""
    names, matrix = fit.model.form.coefficients, correlation_of(known.covariance)
    return [
        (names[i], names[j], float(matrix[i, j]))
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if abs(matrix[i, j]) > ALIKE
    ]


def influence(fit: Fit, most: int = 5) -> list[dict[str, Any]]:
    """Rows with the largest Cook's distance, and all outliers."""
    root = np.sqrt(fit.model.weight)
    _, jacobian = fit.model.derivatives(fit.vector[None])
    columns = basis(jacobian[0].T * root[:, None])
    leverage = np.clip((columns**2).sum(axis=1), 0.0, 1.0 - 1e-9)
    scale = max(scale_of(fit.residuals, len(fit.vector)), ROUNDING * float(np.abs(fit.model.target).max()))
    cook = (fit.residuals / scale) ** 2 * leverage / (1 - leverage) ** 2 / columns.shape[1]
    size = np.abs(fit.residuals) / scale
    rows = set(np.argsort(-cook)[:most].tolist()) | set(np.flatnonzero(size > OUTLIER).tolist())
    return [
        {
            "line": fit.table.lines[row].item(),
            "residual": float(fit.residuals[row]),
            "robust_sds": float(size[row]),
            "leverage": float(leverage[row]),
            "cook": float(cook[row]),
        }
        for row in sorted(rows, key=lambda row: -cook[row])
    ]


def correlations(table: Table) -> list[tuple[str, str, float]]:
    """Correlation of the factors' logarithms, pairs above 0.5."""
    names = factors(table)
    if len(names) < 2:
        return []
    matrix = np.corrcoef([np.log(table.feature(name)) for name in names])
    pairs = [(names[i], names[j], float(matrix[i, j])) for i in range(len(names)) for j in range(i + 1, len(names))]
    return [pair for pair in pairs if abs(pair[2]) > 0.5]


def described(table: Table) -> dict[str, Any]:
    """Rows, ranges and levels of the factors."""
    shown = {
        name: {"low": float(values[0]), "high": float(values[-1]), "levels": len(values)}
        for name, values in table.levels.items()
    }
    return {
        "rows": len(table),
        "designs": len(np.unique(table.design)),
        "quantities": shown,
        "notes": list(table.notes),
    }
