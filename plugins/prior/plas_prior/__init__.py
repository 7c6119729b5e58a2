"""A strategy for a few dozen expensive evaluations: formulas as priors, corrected by what was evaluated."""
