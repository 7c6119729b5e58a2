"""Scripts that measure one architecture: a job as JSON on standard input, the result as the last line of output."""
