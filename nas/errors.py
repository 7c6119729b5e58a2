"""Errors by exit code; a user sees the message and never a traceback."""


class PlasError(Exception):
    """A failed run: exit code 1."""

    exit_code = 1


class UsageError(PlasError):
    """Something typed or configured that cannot be done: exit code 2."""

    exit_code = 2


class AllFailedError(UsageError):
    """Every evaluation so far failed for one and the same reason, which is a fault of the metric: exit code 2."""

    def __init__(self, reason: str, count: int) -> None:
        super().__init__(f"objectives: expected values, got the same failure of all {count:,} evaluated: {reason}")


class NotRunError(PlasError):
    """An evaluation that a worker got and could not run, with the reason: the design is not the cause."""


class InfeasibleError(PlasError):
    """No architecture satisfies the budgets: exit code 3."""

    exit_code = 3
