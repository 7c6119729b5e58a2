"""Trainings that laboratories published, in one convention: counts without embeddings, one row per design.

`sources/NAME.yaml` says whose a table is, under which licence, and how the published file becomes the convention;
`sources/NAME.csv` holds the rows where the licence allows to pass them on.
"""
