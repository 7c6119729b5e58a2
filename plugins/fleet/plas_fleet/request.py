"""The flags of `fleet`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from nas.study.layers import from_file, parsed_settings
from nas.terminal.flags import DESIGN, OUTPUT, Flag, Given, Json, Keys, Quiet, Settings, Word
from plas_range.configuration import SHIPPED
from plas_range.request import CASES, OWN, Applications, DevicesRequest

FLEET = "Which fleet"
ASKED = {  # keys of `fleet` in a study of several devices
    "models": Flag("--models", "Numbers of models, 1..4 or 3; default 1..4.", FLEET, "N[..N]", brief=True),
    "minimise": Flag(
        "--minimise", "loss: weighted mean; regret: the worst over a case's own best; default loss.", FLEET
    ),
    "weights": Flag(
        "--weights", "Units sold, or weights, of the cases in order: 3,1,1; default 1 each.", FLEET, "W,W…", brief=True
    ),
}


@dataclass(frozen=True)
class FleetRequest:
    """Cases as `devices` takes them, and which fleet is asked of them: `asked` are keys of `fleet`."""

    study: Annotated[
        str | None,
        Word("Study of several devices: YAML file, folder of a fleet, or a shipped name; default twelve devices."),
    ] = None
    asked: Annotated[Given, Keys(own=ASKED)] = field(default_factory=dict)
    own: Annotated[Given, Keys(own=OWN)] = field(default_factory=dict)
    applications: Applications = None
    table: Annotated[
        Path | None,
        Flag("--table", "CSV, a row per case, as of plas devices; column weight or units counts it.", CASES),
    ] = None
    flags: Annotated[Given, Keys((*DESIGN, OUTPUT), "device laws residual_sd baselines")] = field(default_factory=dict)
    settings: Annotated[tuple[str, ...], Settings] = ()
    out: Annotated[Path | None, Flag("--out", "New folder; default runs/fleet-NAME, never overwritten.")] = None
    plots: Annotated[bool, Flag("--no-plots", "Leave report.html out.")] = True
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False

    @property
    def of_cases(self) -> DevicesRequest:
        """The same cases as a request of `devices`; without any those of its twelve devices, named, so that preset device holds."""
        own = self.own
        if self.study is None and self.table is None and "devices" not in parsed_settings(self.settings):
            own = {"devices": from_file(SHIPPED, "devices")[0]["devices"], **own}
        return DevicesRequest(
            own, self.applications, self.table, flags=self.flags, config=self.study, settings=self.settings
        )
