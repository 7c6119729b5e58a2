"""Training and inference stacks that an export can be written for, one file each, found by file name."""
