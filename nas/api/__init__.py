"""The public Python API, as `nas` exports it: studies, frontiers, run folders, fitted laws, as pandas tables with units.

It stands above the work of the commands: what it does is what the command of the same name does.
"""
