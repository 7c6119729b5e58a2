"""Stacks of `plas export` for vLLM and llama.cpp, a module each, found by their entry points."""
