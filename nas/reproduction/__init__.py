"""The paper's claims, each recomputed and judged.

It knows the closed forms and exact solutions.
"""
