"""Forms of loss laws, one file each, found by file name."""
