"""Many devices, precisions, workloads and budgets side by side: exact optima, what transfers, published models ranked."""

from nas.files.import_rights import Right
from nas.terminal.parser import command
from plas_range.request import DevicesRequest


def devices(request: DevicesRequest) -> None:
    """Compare exact optima across devices, precisions, workloads and budgets, and rank published models on each.

    Which of these models suits my board?

      plas devices --models-only --devices raspberry_pi_5 --precisions int4

    Does one architecture suit these devices?

      plas devices --devices jetson_agx_orin_64gb@all,rtx_4090 --precisions fp16,int8

    Twelve devices with the paper's study; hundreds of cases from a table:

      plas devices

      plas devices --table cases.csv
    """
    from plas_range.command import answer

    answer(request)


main = command(devices, right=Right.STUDY)
if __name__ == "__main__":
    main()
