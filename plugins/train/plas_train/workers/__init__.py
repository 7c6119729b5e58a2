"""Scripts that run in a process of their own, the only place that imports torch."""
