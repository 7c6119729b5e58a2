"""A study as a person writes it: its keys and defaults, presets, files and flags in layers, names made into objects.

It knows problems. A strategy and its parameters are joined to it above, in `nas.search.assembly`.
"""
