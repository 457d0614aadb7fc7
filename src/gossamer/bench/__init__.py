"""Benchmarks: each a module with `run(report)`, reached by `gossamer bench NAME`. Each prints a table and can write JSON.

Absolute times mean little on another machine or in another hour: every table names machine and versions, and what is
compared stands in one run.
"""
