"""What is read again of the folder of a run of `prior_guided`; the work is imported only for such a folder."""

from pathlib import Path

from nas.problem.problem import Problem
from nas.search.strategy import ReportSection


def recognises(folder: Path) -> bool:
    """Return False: there are no folders but the core's run folders."""
    return False


def completed(section: ReportSection, folder: Path, problem: Problem) -> ReportSection:
    """Complete the recorded sentences with the picks of the folder."""
    from plas_prior.learned_corrections import completed as work

    return work(section, folder, problem)
