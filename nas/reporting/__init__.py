"""Offline pages: a run or several as one HTML file with BokehJS inlined.

Knows outcomes and their sentences; numbers come from `nas.answer` and `nas.frontier`, never from here.
"""
