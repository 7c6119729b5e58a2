"""The frontier of all mixtures of a library's blocks: labels with dominance, dual bounds, and what follows for a budget.

It knows libraries of blocks and the ways to choose among points; nothing of Puzzletron's files, of models or of pages.
"""
