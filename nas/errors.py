"""What can go wrong, by exit code; a user sees the message and never a traceback."""


class PlasError(Exception):
    """A failed run: exit code 1."""

    exit_code = 1


class UsageError(PlasError):
    """Something typed or configured that cannot be done: exit code 2."""

    exit_code = 2


class InfeasibleError(PlasError):
    """No architecture satisfies the budgets: exit code 3."""

    exit_code = 3
