"""The command line: what people type, and what is printed to them. The only place that decides exit codes.

Place in the flow: :mod:`main` finds a command, of ours or of a subject, loads it alone, and turns every error into one
line. Commands of the core lie here, those of a subject in its own folder (`commands.py`). :mod:`saying` prints lines
that cannot stop a command, :mod:`options` makes options out of sheets.

Open first: :mod:`main`.
"""
