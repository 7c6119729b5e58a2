"""Scores of tasks by bits per byte: tables of models, curves fitted to them, what they say of a loss. It knows no design and no study."""
