"""Scores of tasks by bits per byte: tables of models, curves fitted to them, and how well these predict laboratories left out."""
