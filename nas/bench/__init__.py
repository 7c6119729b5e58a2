"""Cases whose truth is known: frozen kinds of distortions of the formulas, and what they make true of any design."""
