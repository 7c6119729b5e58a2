"""Records of a run: the store of evaluations, the folder around it, candidate files.

It knows problems and the keys of a study, and nothing of strategies.
"""
