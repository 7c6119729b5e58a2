"""Regrets under several laws on the screen."""

from nas.answer.law_sentences import TITLE, caveats, notes, verdict_header, verdict_lines, verdict_rows
from nas.answer.law_verdicts import LawAnswers
from nas.problem.problem import Problem
from nas.terminal.console import Line, sentence
from nas.terminal.styles import TITLE as HEADING
from nas.terminal.styles import Styled
from nas.terminal.tables import fitted


def law_lines(problem: Problem, answers: LawAnswers, *, verbose: bool) -> list[Line]:
    """The table of the picks' regrets, what each is right under, where the frontier's designs are; of each law what must be said."""
    lines, _ = fitted(verdict_header(answers.laws), verdict_rows(problem, answers), 2)
    said = [*verdict_lines(problem, answers), *(notes if verbose else caveats)(answers.laws)]
    below = [line for text in said for line in sentence(f"  {text}")]
    return [[], *sentence(Styled(TITLE, HEADING)), *lines, *below]
