"""Explain one architecture: where its time, bytes and loss come from, which limit is active, what a step gains."""

from nas.commands.requests import ExplainRequest
from nas.terminal.parser import command


def explain(request: ExplainRequest) -> None:
    """Explain one architecture of a run, a published model, or any other."""
    from nas.commands.answer_folders import work_of

    if (theirs := work_of("explain", request.run)) is not None:
        theirs(request)
        return
    from nas.commands import explain as work

    work.explain(request)


main = command(
    explain,
    "explain runs/paper-nsga2-s0 --select knee",
    "explain --model qwen2.5_0.5b --device raspberry_pi_5",
    "explain --model gemma_3_1b --preset device --contexts",
)
if __name__ == "__main__":
    main()
