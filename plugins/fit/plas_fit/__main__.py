"""Fit a loss law to trained models: intervals, diagnostics, rival forms, and what to train next."""

from nas.terminal.parser import command
from plas_fit.request import FitRequest


def fit(request: FitRequest) -> None:
    """Fit a loss law to a table of trained models."""
    from plas_fit import command, on_prior

    (command if request.prior is None else on_prior).execute(request)


main = command(
    fit,
    "fit runs.csv --out law.yaml --report fitted",
    "fit eight.csv --prior evidence --out mine.yaml",
    "fit --next 20 --candidates first.csv",
    "fit trained-*/trainings.csv --next 8 --candidates next.csv",
)
if __name__ == "__main__":
    main()
