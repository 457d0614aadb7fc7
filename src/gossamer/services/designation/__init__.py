"""Designation: the ring divides the hosts among agents without a master (Hunyadi 2007, section 3.3).

:mod:`ring` decides, as plain code; :mod:`provider` is what a wiring names.
"""
