"""Where a study's own metrics are evaluated: in this process, in others, or on a cluster that the user himself names."""

from pydantic import BaseModel

from nas.errors import UsageError
from nas.problem.problem import Problem
from nas.search.cluster import ClusterPool
from nas.search.discovery import able_to
from nas.search.strategy import Traits
from nas.search.worker_pool import WorkerPool
from nas.study.configuration import StudyConfig


def pool_of(config: StudyConfig) -> WorkerPool | None:
    """The workers of a study, if any; processes start when they are needed, a cluster is connected to now.

    Raises:
        UsageError: the cluster cannot be used.
    """
    if config.executor is not None:
        address = config.executor.partition(":")[2]
        return ClusterPool(address, config.resources, config.workers, config.evaluation_timeout)
    return WorkerPool(config.workers, config.evaluation_timeout) if config.workers else None


def refuse_misplaced(config: StudyConfig, traits: Traits, problem: Problem) -> None:
    """Refuse what means something only where workers evaluate, and a strategy that must receive everything before it is asked again.

    Raises:
        UsageError: with what to add or to drop, or the strategies that need not wait.
    """
    if config.executor is not None and problem.analytic:
        raise UsageError(
            "executor: expected an objective or a budget of your own, got shipped formulas alone, which are computed here; drop it"
        )
    if config.resources and config.executor is None:
        raise UsageError(
            f"resources: expected --executor with them, got {', '.join(config.resources)} without; add it, or drop them"
        )
    if config.asynchronous and (problem.analytic or (config.workers is None and config.executor is None)):
        raise UsageError(
            "asynchronous: expected an objective of your own and workers that evaluate it, got none; add --workers or --executor, "
            "or drop it"
        )
    if config.evaluation_timeout is not None and config.workers is None and config.executor is None:
        raise UsageError(
            "evaluation_timeout: expected workers with a timeout, got none; add --workers 1 or more, or --executor"
        )
    if config.asynchronous and not traits.asynchronous:
        raise UsageError(
            f"asynchronous: expected a strategy that need not wait ({', '.join(able_to('asynchronous'))}), got {config.algo}; "
            "choose one, or drop it"
        )


def few_whole_values(config: StudyConfig, traits: Traits, problem: Problem) -> list[str]:
    """A sentence where steps leave few values at the full fidelity to a strategy that learns from these alone."""
    stepped = [metric.name for metric in problem.functions if metric.fidelities]
    if not (stepped and traits.informed and traits.cap):
        return []
    return [
        f"{config.algo} learns from values of {stepped[0]} at the full fidelity alone, of which steps leave it few: it comes "
        "farthest without them, and less far the smaller the share that goes on (keep)"
    ]


def idle_workers(config: StudyConfig, parameters: BaseModel, problem: Problem) -> list[str]:
    """A sentence where a strategy asks for fewer architectures at once than there are workers to evaluate them."""
    workers, batch = config.workers or 1, getattr(parameters, "batch", None)
    if problem.analytic or config.asynchronous or not isinstance(batch, int) or batch >= workers:
        return []
    return [
        f"{config.algo} asks for {batch} at once, so that {workers - batch} of {workers} workers wait; --param batch={workers} "
        "keeps them busy, each design chosen without the values of those beside it"
    ]
