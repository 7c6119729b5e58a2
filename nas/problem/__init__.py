"""Problems: objectives and budgets over a space in a scenario, and architectures evaluated in it.

It knows metrics (`objectives`) and spaces (`search_spaces`), and nothing of how anything is searched or kept.
"""
