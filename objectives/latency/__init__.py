"""Latency of an architecture on a device: operators and their rooflines, and the closed form.

It knows scenarios (device, precision, workload), and nothing of memory or loss.
"""
