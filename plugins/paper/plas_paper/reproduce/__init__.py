"""The paper's claims, each recomputed and judged by closed forms and exact solutions."""
