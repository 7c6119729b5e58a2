"""Scripts for the Pythons that have engines: `engine_worker.py` runs the one beside it that knows an engine; they import nothing of ours."""
