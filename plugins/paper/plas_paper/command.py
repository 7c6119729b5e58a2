"""The work of `theory`: a study's problem, or that of new hardware, predicted, printed and written."""

from dataclasses import replace

from nas.answer.carried_study import write_with_study
from nas.answer.under_laws import design_lines
from nas.errors import UsageError
from nas.problem.objective import EXTRAPOLATION, Budget
from nas.problem.problem import Problem
from nas.search.assembly import Study, assemble, under_preset
from nas.study.configuration import PAPER_APPLICATIONS
from nas.study.layers import layered
from nas.terminal.console import notice
from nas.terminal.tables import show
from plas_paper.prediction import candidate_columns, predict
from plas_paper.request import TheoryRequest
from plas_paper.theory_document import theory_document


def answer(request: TheoryRequest) -> None:
    """Predict, print, write.

    Raises:
        UsageError: what the theory does not cover.
        InfeasibleError: nothing meets the budgets.
    """
    study = _study(request)
    problem = study.problem if request.application is None else _with_application(study, request.application)
    prediction = predict(problem, request.width)
    under = None
    if study.laws:
        under = design_lines(problem, study.laws, problem.architectures(prediction.best.genotypes))
    show(theory_document(prediction, under_preset(study, "device"), under), as_json=request.json)
    if request.out is not None:
        columns = candidate_columns(prediction)
        write_with_study(request.out, columns, replace(study, problem=problem))
        if not request.quiet:
            notice(f"{len(columns['id'])} designs worth training written to {request.out}")


def _study(request: TheoryRequest) -> Study:
    hardware = new_hardware(request)
    conventions = {} if request.config else {"preset": "paper"}  # the theory is the paper's
    flags = {**conventions, **request.flags, "algo": "exact"} | ({} if hardware is None else {"device": hardware})
    raw, origins = layered(flags, request.settings, request.config)
    if request.application is not None and raw.get("applications") is None:
        raw["applications"] = PAPER_APPLICATIONS
    study = assemble({**raw, "params": {}}, origins)
    if EXTRAPOLATION in study.config.metric_budgets:
        return study
    return replace(study, problem=replace(study.problem, budgets=study.problem.limits))


def new_hardware(request: TheoryRequest) -> dict[str, str] | None:
    """A device that is in no catalogue, as YAML content; None where no figure of it was given."""
    if request.compute is None or request.bandwidth is None or request.memory is None:
        return None
    peak = request.compute.replace("TOPS", "TOP/s")
    return {
        "name": "new hardware",
        "fp16": peak.replace("OP/s", "FLOP/s").replace("FLFLOP/s", "FLOP/s"),
        "int8": peak.replace("FLOP/s", "OP/s"),
        "bandwidth": request.bandwidth,
        "memory": request.memory,
    }


def _with_application(study: Study, name: str) -> Problem:
    budgets = {q.label: q.budget for q in study.problem.queries if q.budget is not None and not q.baseline}
    if name not in budgets:
        raise UsageError(f"application: expected one of {', '.join(budgets)}, got {name!r}; choose one")
    budget: Budget = budgets[name]
    others = tuple(b for b in study.problem.budgets if b.metric != budget.metric)
    return replace(study.problem, budgets=(*others, budget))
