"""Choose candidates of a run: within budgets, knees, a diverse few, a sweep; or the reason why none fits."""

from nas.commands.requests import SelectRequest
from nas.terminal.parser import command


def select(request: SelectRequest) -> None:
    """Choose candidates of a run; nothing in the run folder is executed."""
    from nas.commands.answer_folders import work_of

    if (theirs := work_of("select", request.run)) is not None:
        theirs(request)
        return
    from nas.commands.select import choose

    choose(request)


main = command(
    select,
    "select runs/paper-nsga2-s0 --budget total_ms=100",
    "select runs/paper-nsga2-s0 --select diverse:5 --out five.csv",
    "select runs/paper-nsga2-s0 --sweep total_ms=20:500:20",
    "select runs/paper-nsga2-s0 --select budget:total_ms=100 --laws joint_moe,routed",
    "select runs/paper-nsga2-s0 --select best --precisions fp16,int8,int4 --precision-law qat,kumar",
)
if __name__ == "__main__":
    main()
