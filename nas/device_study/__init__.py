"""Many devices, precisions, workloads and budgets at once: exact answers side by side, what transfers, published models.

It knows problems, exact solutions and how an answer is worded; a page or a command puts its tables and pictures to use.
"""
