"""A prediction as JSON content."""

from dataclasses import asdict
from typing import Any

from nas.theory.prediction import Prediction
from nas.theory.relaxation import Relaxation
from nas.theory.text import on_active_experts
from nas.theory.validation import worth_training


def as_json(prediction: Prediction) -> dict[str, Any]:
    """A prediction as plain content."""
    rounded, exact = prediction.rounded, prediction.exact
    found = worth_training(prediction)
    return {
        "limits": prediction.theory.limits,
        "normalised": asdict(prediction.budgets)
        | {
            "eta": prediction.budgets.eta,
            "eta_p": prediction.budgets.eta_p,
            "eta_p_plain": prediction.budgets.eta_p_plain,
        },
        "width": prediction.width,
        "regimes": [asdict(r) | {"binds": r.binds, "paper_binds": r.paper_binds} for r in prediction.regimes],
        "closed_forms": [asdict(form) | {"holds": form.holds} for form in prediction.forms],
        "no_closed_forms": prediction.no_forms,
        "program": _program_json(prediction.whole),
        "operator_program": None if prediction.operator is None else _program_json(prediction.operator),
        "rounded": {
            "design": None if rounded.design is None else _row(prediction, rounded.design, 0),
            "bound": rounded.bound,
            "law_on_active_experts": on_active_experts(prediction),
            "relaxations": rounded.relaxations,
            "cut_off": rounded.cut_off,
            "designs": rounded.designs,
            "complete": rounded.complete,
        },
        "exact": None
        if exact is None
        else {"design": _row(prediction, exact.pick, 0), "regret": exact.regret, "on_frontier": exact.on_frontier},
        "worth_training": []
        if found is None
        else [{"reason": reason} | _row(prediction, found[1], i) for i, reason in enumerate(found[0])],
    }


def _program_json(relaxation: Relaxation) -> dict[str, Any]:
    o = relaxation.optimum
    return {
        "point": o.point,
        "loss": relaxation.loss,
        "bound": relaxation.bound,
        "prices": relaxation.prices,
        "residual": o.residual,
        "steps": o.steps,
    }


def _row(prediction: Prediction, chosen: Any, row: int) -> dict[str, Any]:
    shapes = prediction.theory.problem.architectures(chosen.genotypes[row : row + 1])
    columns = {**shapes.columns(), **{name: column[row : row + 1] for name, column in chosen.metrics.items()}}
    return {name: column[0].item() for name, column in columns.items()}
