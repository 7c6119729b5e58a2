"""What the help of `plas run` says of defaults holds."""

from nas.study.layers import layered
from nas.terminal.flags import WITH_DEVICE, flag_of, study_keys


def test_defaults_in_the_help_hold_with_a_device() -> None:
    """Every brief default that naming a device changes is stated as it then is."""
    resolved = layered({"device": "raspberry_pi_5"}, (), None)[0]
    entries = study_keys()
    brief = [
        name for name in entries if entries[name].key.brief and f"default {entries[name].default}" in flag_of(name).help
    ]
    changed = {
        name: resolved[name] for name in brief if resolved.get(name, entries[name].default) != entries[name].default
    }
    changed.pop("device")
    assert {name: f", {value} with --device" for name, value in changed.items()} == WITH_DEVICE
