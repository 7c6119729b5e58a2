"""Offline pages: a run or several as one HTML file with BokehJS inlined, and what every command's page is built from.

Knows outcomes and their sentences; numbers come from `nas.answer`, never from here.
"""
