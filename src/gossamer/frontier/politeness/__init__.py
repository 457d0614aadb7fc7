"""Polite before fast: when may which host be asked. Decisions only: time is an argument, there is no loop and no I/O.

Place in the flow: the frontier asks :mod:`schedule` whose turn it is, tells :mod:`gates` what begins and what ends, and
does with the page what :mod:`retries` rules. The other modules are what those stand on, one rule each. Instants are
monotonic seconds; wall time appears only in notes that outlive the process (fault 94). Why it is built so, and every
default with its reason: decision 7.
"""
