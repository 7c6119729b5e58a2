"""Strategies compared over seeds and studies: runs, measures, statistics, tables, pictures."""
