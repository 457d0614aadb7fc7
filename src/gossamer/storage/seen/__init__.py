"""Seen sets: has a URL, a document or nearly this text been met before (rows M3, M6, P2, S12)?

Place in the flow: the stages ask through a :mod:`contract`; the ledger has seen sets of its own, and these are others. Those of
:mod:`memory` serve crawls that fit, and tests; it has the bounded tables in front of any seen set, too. The *sieve* serves the
largest crawls (decision 9): nothing is looked up while a page waits. Offers go into a log and a bounded buffer of fingerprints;
when the buffer is full, a thread merges it with the sorted runs on the disk, and new URLs come out in bulk. The idea is
Mercator's and BUbiNG's (DRUM, Lee et al., WWW 2008, spread over runs as in a log-structured tree).

:mod:`sieve` is the whole of it in one class; :mod:`runs` holds keys, files and the arithmetic of a merge. :mod:`providers` names
it in a wiring, and puts it before the ledger. :mod:`logged` is the beginning of sets that keep files of their own.

Open first: :mod:`contract`.
"""
