"""Sentences on energy: what joules are made of, and what was never metered."""

from objectives.assessment import stating
from objectives.profile_choice import energy_named, energy_unseen
from objectives.scenario import Scenario


def is_energy(name: str) -> bool:
    """Whether a shipped metric, or a quantile of it, is of energy."""
    return name.partition("@")[0] in stating("ENERGY")


def about_energy(scenario: Scenario, *, experts: bool) -> list[str]:
    """The source of the energy of a scenario's requests; empty where it is not known."""
    energy = scenario.energy
    if energy is None or scenario.calibration is None:
        return []
    tokens = scenario.input_tokens + scenario.output_tokens
    unseen = energy_unseen(energy, scenario.precision.name, scenario.batch, tokens, experts=experts)
    return [energy_named(energy), *([unseen] if unseen else [])]


def energies(scenario: Scenario) -> list[str]:
    """The metrics of energy that a scenario has, whatever its text; none where its energy is not known."""
    known = scenario.energy is not None and scenario.calibration is not None
    return [name for name in stating("ENERGY") if known and name not in stating("PER_BYTE")]
