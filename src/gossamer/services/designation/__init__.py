"""Designation: which agent a host belongs to (Hunyadi 2007, sections 3.3 and 5.3.1).

The :mod:`ring` needs no master; it decides as plain code, and :mod:`provider` is what a wiring names. For a master :mod:`table`
keeps what one of the :mod:`policies` has chosen.
"""
