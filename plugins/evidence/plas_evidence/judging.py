"""Questions as pairs of a table's rows, and how laws and rules do on them: order with its interval, regret, slope, error, what is mute."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nas.study.study_laws import Record
from objectives.loss_law.draws import difference_quantiles, probability_below
from objectives.loss_law.law import Law
from plas_evidence.tables import RULES, GroupedTable, Prediction, by_law, by_rule
from plas_fit.fitting.trained_models import Table
from search_spaces.arrays import AnyArray, BoolArray, FloatArray, IntArray

EQUAL, ALIKE, EQUAL_FLOPS = np.log(1.01), np.log(1.05), np.log(1.05)
TIE = 1e-9  # nats
DESIGN = (
    *("depth", "width", "query_dim", "kv_dim", "expert_ffn_ratio", "n_experts", "top_k"),
    *("parameters", "active_parameters"),
)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows `first` and `second` of a table that differ in measured loss, (pairs,)."""

    first: IntArray
    second: IntArray

    def __len__(self) -> int:
        return len(self.first)

    @property
    def rows(self) -> IntArray:
        """The rows that are in some pair."""
        return np.unique(np.concatenate([self.first, self.second]))


class Comparable:
    """All pairs of a table's rows within its groups, and how each quantity differs in them; `group` is (n,)."""

    def __init__(self, table: Table, group: AnyArray) -> None:
        self.table = table
        first, second = np.triu_indices(len(table), 1)
        keep = (group[first] == group[second]) & (np.abs(table.loss[first] - table.loss[second]) > TIE)
        self.first, self.second = first[keep], second[keep]

    @cached_property
    def _apart(self) -> dict[str, FloatArray]:
        return {}

    def has(self, name: str) -> bool:
        """Whether the table says a quantity."""
        return name in ("flops", "query_ratio") or self.table.has(name)

    def apart(self, name: str) -> FloatArray:
        """|Δ ln| of a quantity in every pair, (pairs,); `flops` are 6 · active parameters · tokens, `query_ratio` query width per width."""
        if name not in self._apart:
            log = np.log(self._quantity(name))
            self._apart[name] = np.abs(log[self.first] - log[self.second])
        return self._apart[name]

    def equal(self, *names: str) -> BoolArray:
        """Pairs that are equal in all of the quantities that the table says, (pairs,)."""
        return self.within(EQUAL, *names)

    def alike(self, *names: str) -> BoolArray:
        """Pairs that are alike in all of the quantities that the table says, (pairs,)."""
        return self.within(ALIKE, *names)

    def differ(self, *names: str) -> BoolArray:
        """Pairs that are not equal in one of the quantities at least, (pairs,)."""
        kept = np.zeros(len(self.first), dtype=bool)
        for name in names:
            if self.has(name):
                kept |= self.apart(name) > EQUAL
        return kept

    def within(self, most: float, *names: str) -> BoolArray:
        """Pairs that differ by at most `most`, a logarithm, in all of the quantities that the table says, (pairs,)."""
        kept = np.ones(len(self.first), dtype=bool)
        for name in names:
            if self.has(name):
                kept &= self.apart(name) <= most
        return kept

    def chosen(self, keep: BoolArray) -> Pairs:
        """The pairs that are kept."""
        return Pairs(self.first[keep], self.second[keep])

    def _quantity(self, name: str) -> FloatArray:
        if name == "flops":
            return 6.0 * self.table.feature("active_parameters") * self.table.feature("tokens")
        if name == "query_ratio":
            return self.table.feature("query_dim") / self.table.feature("width")
        return self.table.feature(name)


def _size(c: Comparable) -> BoolArray:
    return c.equal("tokens", "n_experts", "top_k") & ~c.alike("active_parameters")


def _shape(c: Comparable) -> BoolArray:
    same = c.equal("tokens", "n_experts", "top_k") & c.alike("active_parameters", "parameters")
    return same & c.differ("depth", "width")


def _experts(c: Comparable) -> BoolArray:
    return c.equal("tokens", "depth", "width", "top_k") & c.differ("n_experts")


def _active(c: Comparable) -> BoolArray:
    return c.equal("tokens", "depth", "width", "n_experts") & c.differ("top_k")


def _memory(c: Comparable) -> BoolArray:
    return c.equal("tokens") & c.alike("parameters") & c.differ("n_experts")


def _ffn(c: Comparable) -> BoolArray:
    return c.equal("tokens", "depth", "width", "n_experts", "top_k") & c.differ("expert_ffn_ratio")


def _kv(c: Comparable) -> BoolArray:
    same = c.equal("tokens", "depth", "width", "n_experts", "top_k", "expert_ffn_ratio", "query_dim")
    return same & c.differ("kv_dim")


def _attention(c: Comparable) -> BoolArray:
    return c.equal("tokens") & c.alike("active_parameters", "parameters") & ~c.alike("query_ratio")


def _tokens(c: Comparable) -> BoolArray:
    return c.equal(*DESIGN) & c.differ("tokens")


def _compute(c: Comparable) -> BoolArray:
    return c.within(EQUAL_FLOPS, "flops") & c.equal("n_experts", "top_k") & ~c.alike("active_parameters")


def _equal_tokens(c: Comparable) -> BoolArray:
    return c.equal("tokens")


QUESTIONS: Mapping[str, tuple[tuple[str, ...], Callable[[Comparable], BoolArray]]] = {
    "size": (("active_parameters",), _size),
    "shape": (("depth", "width", "active_parameters"), _shape),
    "experts": (("depth", "width", "n_experts"), _experts),
    "active": (("depth", "width", "top_k"), _active),
    "memory": (("parameters", "n_experts"), _memory),
    "ffn": (("depth", "width", "expert_ffn_ratio"), _ffn),
    "kv": (("depth", "width", "expert_ffn_ratio", "kv_dim"), _kv),
    "attention": (("query_dim", "width", "active_parameters"), _attention),
    "tokens": (("tokens", "active_parameters"), _tokens),
    "compute": (("tokens", "active_parameters"), _compute),
    "equal tokens": ((), _equal_tokens),
}  # by name: the quantities that a table must say, and which pairs


def questions_of(table: Table, group: AnyArray) -> dict[str, Pairs]:
    """The questions that a table has any pair for, with these pairs; `group` marks rows that may be compared, (n,)."""
    comparable = Comparable(table, group)
    by_question = {
        name: comparable.chosen(which(comparable))
        for name, (needed, which) in QUESTIONS.items()
        if all(map(table.has, needed))
    }
    return {name: pairs for name, pairs in by_question.items() if len(pairs)}


BOOTSTRAPS, SEED = 1_000, 20_261_124
LEAST_PAIRS, LEAST_ROWS = 10, 5
LEVELS, BINS = (50, 80, 90), (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
MEASURED = 200  # pairs whose intervals' widths are taken
AT_ONCE = 20_000_000  # weights held together


@dataclass(frozen=True)
class Doubt:
    """What a law's draws and its misfit claim of differences, and what holds, over the pairs inside of what it was fitted on.

    outside: share of the pairs that are not. coverage: share of measured differences inside intervals of 50, 80 and 90 %; width: median width of
    those of 90 %, nats. bins: by the probability of the likelier order, between two of BINS each, how many pairs and how many of them in that
    order. sure: share of the pairs in the last, 95 % or more; sure_right: share of these in that order.
    """

    outside: float
    coverage: Mapping[int, float] | None
    width: float | None
    sure: float | None
    sure_right: float | None
    bins: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Judgement:
    """How a law or a rule does on one question of one table.

    pairs: those that it prices, of `of`; order: the share of `of` in the right order, ties and pairs that it does not price counted half (a coin),
    within `interval` (95 %, bootstrap over rows);
    regret: nats, mean over rows; slope: nats measured per nat predicted; error: rms of differences, nats; both nan of a
    rule, which predicts no nats. mute: the share of `of` that it does not price or sees no difference in. decides: whether pairs and rows are enough.
    """

    pairs: int
    of: int
    order: float
    interval: tuple[float, float]
    regret: float
    slope: float
    error: float
    mute: float
    decides: bool
    doubt: Doubt | None = None


def judged(predictions: Mapping[str, Prediction | None], loss: FloatArray, pairs: Pairs) -> dict[str, Judgement | None]:
    """A judgement of each prediction by name; None of one that is None."""
    made = {name: one for name, one in predictions.items() if one is not None}
    intervals = order_intervals({name: _order(one.losses, loss, pairs) for name, one in made.items()}, pairs)
    judgements = {name: _judgement(one, loss, pairs, intervals[name]) for name, one in made.items()}
    return {name: judgements.get(name) for name in predictions}


def order_intervals(right: Mapping[str, FloatArray], pairs: Pairs) -> dict[str, tuple[float, float]]:
    """The 95 % interval of the mean of each `right` (pairs,).

    Rows are drawn again with replacement, a pair as often as both its rows together.
    """
    generator = np.random.default_rng(SEED)
    rows, place = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    first, second = place[: len(pairs)], place[len(pairs) :]
    every = np.stack([*right.values()], axis=1)
    shares = []
    for count in _blocks(len(pairs)):
        drawn = generator.multinomial(len(rows), np.full(len(rows), 1.0 / len(rows)), size=count)
        weight = (drawn[:, first] * drawn[:, second]).astype(np.float64)
        with np.errstate(invalid="ignore"):
            shares.append((weight @ every) / weight.sum(axis=1, keepdims=True))
    means = np.concatenate(shares)
    return {name: _interval(means[:, place]) for place, name in enumerate(right)}


def _interval(shares: FloatArray) -> tuple[float, float]:
    finite = shares[np.isfinite(shares)]
    low, high = np.quantile(finite, [0.025, 0.975]) if len(finite) else (0.0, 1.0)
    return float(low), float(high)


def _order(predicted: FloatArray, loss: FloatArray, pairs: Pairs) -> FloatArray:
    """1 for a pair in the right order, 0 in the wrong one, .5 for a tie and for one that is not priced, (pairs,)."""
    difference = predicted[pairs.first] - predicted[pairs.second]
    true = loss[pairs.first] - loss[pairs.second]
    return np.where(np.abs(difference) > TIE, (difference * true > 0).astype(np.float64), 0.5)


def _judgement(prediction: Prediction, loss: FloatArray, pairs: Pairs, interval: tuple[float, float]) -> Judgement:
    predicted = prediction.losses
    right = _order(predicted, loss, pairs)
    priced = np.isfinite(predicted[pairs.first] - predicted[pairs.second])
    own = Pairs(pairs.first[priced], pairs.second[priced])
    difference = predicted[own.first] - predicted[own.second]
    true = loss[own.first] - loss[own.second]
    seen = np.abs(difference) > TIE
    mute = 1.0 - float(seen.sum()) / len(pairs)
    if not seen.any():
        return Judgement(len(own), len(pairs), 0.5, (0.0, 1.0), np.nan, np.nan, np.nan, mute, decides=False)
    slope = float((difference * true).sum() / (difference**2).sum()) if prediction.in_nats else np.nan
    error = float(np.sqrt(((difference - true) ** 2).mean())) if prediction.in_nats else np.nan
    decides = len(own) >= LEAST_PAIRS and len(own.rows) >= LEAST_ROWS
    order, regret = float(right.mean()), _regret(predicted, loss, own)
    return Judgement(
        len(own), len(pairs), order, interval, regret, slope, error, mute, decides, _doubt(prediction, true, own)
    )


def _doubt(prediction: Prediction, true: FloatArray, pairs: Pairs) -> Doubt | None:
    """How intervals of differences and orders called sure do on pairs inside of what the law was fitted on; None without draws."""
    if prediction.draws is None:
        return None
    out = np.zeros(len(prediction.losses), dtype=bool) if prediction.outside is None else prediction.outside
    inside = ~(out[pairs.first] | out[pairs.second])
    own, true = Pairs(pairs.first[inside], pairs.second[inside]), true[inside]
    if not len(own):
        return Doubt(1.0, None, None, None, None)
    held, worse = np.empty(len(own)), np.empty(len(own))
    size = max(1, AT_ONCE // len(prediction.draws))
    for start in range(0, len(own), size):
        block = slice(start, start + size)
        gaps = prediction.draws[:, own.first[block]] - prediction.draws[:, own.second[block]]
        held[block] = probability_below(gaps, prediction.misfit, true[block])
        worse[block] = 1.0 - probability_below(gaps, prediction.misfit)
    coverage = {level: float((np.abs(held - 0.5) <= level / 200).mean()) for level in LEVELS}
    bins = binned(np.maximum(worse, 1.0 - worse), (worse > 0.5) == (true > 0))
    sure, right = bins[-1]
    few = np.unique(np.linspace(0, len(own) - 1, MEASURED).astype(np.int64))
    low, high = difference_quantiles(
        prediction.draws[:, own.first[few]] - prediction.draws[:, own.second[few]], prediction.misfit, (0.05, 0.95)
    )
    return Doubt(
        1.0 - len(own) / len(pairs),
        coverage,
        float(np.median(high - low)),
        sure / len(own),
        right / sure if sure else None,
        bins,
    )


def binned(probability: FloatArray, right: BoolArray) -> tuple[tuple[int, int], ...]:
    """Between each two of BINS how many statements have such a probability, and how many of them are right; both (statements,)."""
    place = np.digitize(probability, BINS[1:-1])
    return tuple((int((place == i).sum()), int(right[place == i].sum())) for i in range(len(BINS) - 1))


def _blocks(pairs: int) -> list[int]:
    size = max(1, min(BOOTSTRAPS, AT_ONCE // max(pairs, 1)))
    return [min(size, BOOTSTRAPS - start) for start in range(0, BOOTSTRAPS, size)]


def _regret(predicted: FloatArray, loss: FloatArray, pairs: Pairs) -> float:
    """Of each row among those that it is paired with: the loss of what is predicted best, ties their mean, less the lowest; the mean over rows."""
    regrets = []
    for row in pairs.rows:
        others = np.concatenate([pairs.second[pairs.first == row], pairs.first[pairs.second == row], [row]])
        best = others[predicted[others] <= predicted[others].min() + TIE]
        regrets.append(float(loss[best].mean() - loss[others].min()))
    return float(np.mean(regrets))


@dataclass(frozen=True, eq=False)
class TableRecord:
    """One table: its pairs by question, and by question what became of every law and rule, None of one that cannot be asked.

    fitted: laws whose coefficients are of this very table.
    """

    source: GroupedTable
    pairs: Mapping[str, Pairs]
    by: Mapping[str, Mapping[str, Judgement | None]]
    fitted: frozenset[str] = frozenset()

    @cached_property
    def decided(self) -> frozenset[str]:
        """Questions for which the table has pairs and rows enough."""
        own = self.by.items()
        return frozenset(name for name, by in own if any(one is not None and one.decides for one in by.values()))


def table_record(source: GroupedTable, laws: Mapping[str, Law], questions: Iterable[str] = QUESTIONS) -> TableRecord:
    """What a table says of laws and rules."""
    wanted = set(questions)
    pairs = {name: own for name, own in questions_of(source.table, source.group).items() if name in wanted}
    predictions = {name: by_law(law, source) for name, law in laws.items()}
    predictions |= {name: by_rule(quantity, source.table) for name, quantity in RULES.items()}
    by = {question: judged(predictions, source.table.loss, own) for question, own in pairs.items()}
    return TableRecord(source, pairs, by, _fitted(source, laws))


def _fitted(source: GroupedTable, laws: Mapping[str, Law]) -> frozenset[str]:
    pooled = (name for name, law in laws.items() if law.provenance.get("pooled", {}).get(source.name, 0) > 0)
    return frozenset([*source.fitted, *pooled])


def means(records: Iterable[TableRecord]) -> dict[str, dict[str, Record]]:
    """By question and law or rule: the mean order over the tables that decide the question, a table each."""
    by_question: dict[str, dict[str, Record]] = {}
    kept = list(records)
    for question in QUESTIONS:
        deciding = [record for record in kept if question in record.decided]
        if not deciding:
            continue
        names = deciding[0].by[question]
        by_question[question] = {name: _mean([record.by[question][name] for record in deciding]) for name in names}
    return by_question


def _mean(judgements: list[Judgement | None]) -> Record:
    orders = [0.5 if one is None else one.order for one in judgements]
    mute = sum(one is None or one.mute == 1.0 for one in judgements)
    priced = [0.0 if one is None else one.pairs / one.of for one in judgements]
    return Record(float(np.mean(orders)), len(judgements), mute, float(np.mean(priced)))
