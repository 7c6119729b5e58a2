"""Stacks of three training frameworks for `plas export`, a module each, found by their entry points."""
