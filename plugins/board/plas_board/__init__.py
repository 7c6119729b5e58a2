"""Part of plas-codesign's wheel, around its core: candidates measured on real hardware, and devices calibrated on measurements and on anybody's logs."""
