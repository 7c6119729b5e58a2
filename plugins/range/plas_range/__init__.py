"""Part of plas-codesign's wheel, around its core: many devices, precisions, workloads and budgets at once: exact answers side by side, what transfers, published models."""
