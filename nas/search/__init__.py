"""How a study is searched: what a strategy is, the loop that asks, evaluates, logs and tells, and what strategies share.

`assembly` is the one place that turns names into objects, `loop` asks, evaluates, logs and tells. The strategies
themselves stand above, one file each, in `nas.strategies`.
"""
