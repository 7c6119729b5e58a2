"""What follows from evaluated architectures: dominance, indicators, picks, selection, diagnosis, uncertainty, a breakdown of one.

It knows problems, and nothing of where evaluations come from.
"""
