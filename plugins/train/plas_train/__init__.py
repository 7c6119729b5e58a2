"""Part of plas-codesign's wheel, around its core: reference training of candidates, the same data in the same order, recorded, resumable; `train` as an objective."""
