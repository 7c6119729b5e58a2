"""Loss laws: the form of a law, the quantities it depends on, and a law with its coefficients and range.

The forms are modules of `objectives.law_forms`, the coefficients YAML files of `objectives.laws`; fitting is in `plas_fit.fitting`.
"""
