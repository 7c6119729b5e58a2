"""Searches: the interface of strategies, the loop that asks, evaluates, logs and tells, and what strategies share.

`reading` turns what a study names into objects, `assembly` these into a problem and a strategy; `loop` asks, evaluates,
logs and tells. The strategies themselves stand above, one file each, in `nas.strategies`.
"""
