"""The fewest models for all devices: the best one, two, three … that serve every case, and what each further one buys."""

from nas.files.import_rights import Right
from nas.terminal.parser import command
from plas_fleet.request import FleetRequest


def fleet(request: FleetRequest) -> None:
    """Choose the models of a fleet: the best 1, 2, 3 … that serve all cases, and what each further one buys.

    Cases are those of plas devices: devices, precisions and workloads with their limits, each with a weight.

      plas fleet --models 1..4

      plas fleet --table cases.csv --models 3 --minimise regret

      plas fleet --devices raspberry_pi_5,rtx_4090 --precisions fp16,int4 --weights 3,1,1,1
    """
    from plas_fleet.command import answer

    answer(request)


main = command(fleet, right=Right.STUDY)
if __name__ == "__main__":
    main()
