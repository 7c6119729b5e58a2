"""Reference training of candidates: the same data in the same order, each in a process of its own, recorded, resumable."""
