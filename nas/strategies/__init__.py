"""Search strategies, one file each, found by file name; modules that begin with an underscore are shared machinery."""
