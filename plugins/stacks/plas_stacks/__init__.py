"""Stacks of `plas export` for training frameworks, vLLM and llama.cpp, a module each, found by their entry points."""
