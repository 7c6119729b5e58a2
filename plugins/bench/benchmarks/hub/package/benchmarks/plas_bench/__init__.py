from ._plas_bench import Problem

__all__ = ["Problem"]
