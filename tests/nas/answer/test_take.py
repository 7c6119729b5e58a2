"""Train or take: which published models fit, which of them is the one to take, and what is said of it."""

import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import numpy as np
import pytest

from nas import load_study
from nas.answer import take
from nas.answer.answer_document import answer_document
from nas.answer.outcome import Outcome
from nas.answer.outcome_files import summary
from nas.answer.take import TrainOrTake, advice, train_or_take
from nas.pages.run_page import run_page
from nas.problem.parity import LossCurve
from nas.problem.uncertainty import AS_GOOD
from nas.search.assembly import Study
from nas.study.baselines import baseline
from nas.study.catalogue import load_law
from objectives.published_models import Trained, trained_models
from search_spaces.architectures import one

Concluded = Callable[..., Outcome]
BOARD = {
    "preset": "device",
    "device": "raspberry_pi_5",
    "precision": "q4_k_m",
    "budgets": {"tpot_ms": 100, "resident_gb": 2},
}


DESIGN = {
    "depth": 24,
    "width": 1792,
    "head_dim": 64,
    "n_heads": 28,
    "n_kv_heads": 4,
    "n_experts": 16,
    "top_k": 2,
    "expert_size": 2688,
}


@pytest.fixture(scope="module")
def found() -> TrainOrTake:
    """The comparison of a board's study."""
    return compared()


def compared(**raw: Any) -> TrainOrTake:
    """The comparison of a study with a design of 16 experts."""
    answer = train_or_take(load_study(**{**BOARD, **raw}).problem, one(DESIGN))
    assert answer is not None
    return answer


def test_offers_fit_are_the_newest_and_are_priced_as_explain_does(found: TrainOrTake) -> None:
    problem = load_study(**BOARD).problem
    dates = [offer.trained.date for offer in found.offers]
    assert dates == sorted(dates, reverse=True)
    for offer in found.offers:
        own = problem.assess(baseline(offer.trained.model).architecture)
        assert offer.metrics == {name: float(own[name][0]) for name in offer.metrics}
        assert offer.metrics["tpot_ms"] <= 100
        assert offer.metrics["resident_gb"] <= 2
    assert 0 < len(found.offers) + len(found.unpriced) <= found.fits < found.of == len(trained_models())


def test_the_best_is_the_newest_of_the_lowest_losses(found: TrainOrTake) -> None:
    assert found.best is not None
    alike = [offer for offer in found.offers if offer.loss <= found.best.loss + AS_GOOD]
    assert min(offer.loss for offer in found.offers) >= found.best.loss - AS_GOOD
    assert found.best.trained.date == max(offer.trained.date for offer in alike if offer.loss <= found.best.loss)


def test_tokens_and_hours_belong_together(found: TrainOrTake) -> None:
    for offer in found.offers:
        assert offer.parity.low <= offer.parity.middle <= offer.parity.high
        if np.isfinite(offer.parity.middle):
            ratio = offer.hours.middle / offer.parity.middle
            assert ratio == pytest.approx(offer.hours.low / offer.parity.low)


def test_a_lower_loss_takes_more_tokens(found: TrainOrTake) -> None:
    """Of models of which tokens and tokenizer are known."""
    known = [o for o in found.offers if o.trained.tokens and o.trained.bytes_per_token and not o.trained.made_by]
    ordered = sorted(known, key=lambda offer: offer.loss)
    needed = [offer.parity.middle for offer in ordered]
    assert needed == sorted(needed, reverse=True)


def test_more_training_turns_take_into_train() -> None:
    found = compared(tokens=1e10)
    assert found.take
    first, second = advice(found)
    assert first.startswith(f"Take {found.best.label if found.best else ''} (")
    assert second.startswith(("To be level, train on ", "No number of tokens makes it level"))
    assert found.best is not None
    enough = compared(tokens=1.01 * found.best.parity.middle)
    assert not enough.take
    assert next(advice(enough)).startswith(f"Train it: the best published model that fits is {found.best.label} (")


def test_where_none_fits_that_is_said() -> None:
    none = compared(budgets={"tpot_ms": 0.001})
    assert (none.best, none.fits, none.take) == (None, 0, False)
    assert [*advice(none)] == [f"Of {none.of} published models none fits."]


@pytest.mark.parametrize(
    "raw", [{"preset": "paper"}, {"law": "hw_codesign"}, {"latency": "closed_form", "complete": False}], ids=str
)
def test_what_is_no_whole_model_or_sees_no_tokens_is_not_compared(
    raw: dict[str, Any], studied: Callable[..., Study]
) -> None:
    problem = studied(**{"device": "raspberry_pi_5", "preset": "device", **raw}).problem
    design = problem.architectures(problem.space.genotypes(np.zeros(1, dtype=np.int64)))
    assert train_or_take(problem, design) is None


def test_the_numbers_are_json_and_the_document_shows_each_offer(concluded: Concluded) -> None:
    outcome = concluded(60, **BOARD, law="evidence", complete=True, vocabulary=151_936, causal=True)
    assert outcome.take is not None
    content = json.loads(json.dumps(summary(outcome)["train_or_take"], allow_nan=False))
    assert [offer["name"] for offer in content["offers"]] == [offer.label for offer in outcome.take.offers]
    assert content["best"] == (outcome.take.best.label if outcome.take.best else None)
    (section,) = [each for each in answer_document(outcome).sections if each.key == "take"]
    assert [row[0] for row in section.parts[-1].rows] == [offer.label for offer in outcome.take.offers]  # type: ignore[union-attr]


def test_what_is_not_published_of_a_model_widens_its_interval() -> None:
    """Tokens that nobody says, and those of a model that was pruned."""
    law = load_law("evidence")
    design = one({"depth": 24, "width": 1024, "head_dim": 64, "n_heads": 16, "n_kv_heads": 4, "expert_size": 2816})
    curve = LossCurve.of(law, design)
    shape = baseline("smollm2_135m").architecture
    known = Trained("a", "smollm2_135m", 2e12, 4.0, "2024-11", "Apache-2.0")
    unknown = Trained("a", "smollm2_135m", None, 4.0, "2024-11", "Apache-2.0")
    pruned = Trained("a", "smollm2_135m", 2e12, 4.0, "2024-11", "Apache-2.0", "pruning")
    no_bytes = Trained("a", "smollm2_135m", 2e12, None, "2024-11", "Apache-2.0")
    of_known = take.parity_with(curve, known, take.losses_of_model(law, known, shape))
    for other in (unknown, pruned, no_bytes):
        found = take.parity_with(curve, other, take.losses_of_model(law, other, shape))
        assert found.low <= of_known.low
        assert found.high >= of_known.high
        assert (found.low, found.high) != (of_known.low, of_known.high)


def test_a_limit_on_the_loss_is_no_limit_on_a_model(found: TrainOrTake) -> None:
    """Whose loss is one of its own tokens; and nothing is said of a design that the law was not fitted for."""
    limited = compared(budgets={**BOARD["budgets"], "loss": 1.0})  # type: ignore[dict-item]
    assert (limited.fits, limited.best) == (found.fits, found.best)
    problem = load_study(**BOARD).problem
    assert train_or_take(problem, one({**DESIGN, "n_kv_heads": 28, "expert_size": 100})) is None


def test_the_page_says_what_to_take_before_the_design(concluded: Concluded) -> None:
    outcome = concluded(60, **BOARD, law="evidence", complete=True, vocabulary=151_936, causal=True)
    assert outcome.take is not None
    written = run_page(outcome, "run", {}, {})
    flat = unescape(re.sub("<[^>]+>", "", written))
    assert all(sentence in flat for sentence in advice(outcome.take))
    first = next(advice(outcome.take)).partition(" (")[0]
    assert (written.index(f"<p>{first}") < written.index('id="pick"')) == outcome.take.take


def test_no_model_is_offered_where_a_pick_has_the_least_of_another_metric(inside: Callable[..., Any]) -> None:
    line = ("run", "--device", "rpi5", "--algo", "random", "--evaluations", 60, "--no-plots", "--objectives")
    by_loss, by_time = (inside(*line, names, "--out", names).out for names in ("loss,total_ms", "total_ms,memory_gb"))
    assert "\nTake " in by_loss
    assert "\nTake " not in by_time
    assert "\nBest design: " in by_time
