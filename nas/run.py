"""Search for the architectures with the best trade-offs; results go into a run folder."""

from nas.commands.requests import RunRequest
from nas.terminal.parser import command


def run(request: RunRequest) -> None:
    """Search for the architectures with the best trade-offs.

    With nothing else than --algo this is the paper's study: its space, its loss law, Jetson AGX Orin 64 GB.
    """
    from nas.commands.run import execute

    execute(request)


main = command(
    run,
    "run --device jetson_orin_nano_super_8gb --precision int8",
    "run --algo exact --budget total_ms=100 --budget memory_gb=4",
    "run --algo exact --set laws=joint_moe,routed,chinchilla_epoch",
    "run --resume runs/paper-nsga2-s0 --evaluations 10000",
)
if __name__ == "__main__":
    main()
