"""PLAS: multi-objective, hardware-aware architecture search of on-device LLMs."""

from nas.startup.import_path import keep_together, leave_working_folder

PLAS = "plas-codesign"
leave_working_folder()
keep_together()

from nas.startup.interrupts import guard_imports  # noqa: E402  (what it imports must not come from the working folder)

guard_imports()
