"""URL-seen in bulk, for the largest crawls (rows M6, P2; decision 9): nothing is looked up while a page waits.

Place in the flow: what is offered goes into a log and a bounded buffer of fingerprints; when the buffer is full, a
thread merges it with the sorted runs on the disk, and what no run holds comes out, in bulk. The idea is Mercator's and
BUbiNG's (DRUM, Lee et al., WWW 2008, spread over runs as in a log-structured tree). `sieve.py` is the whole of it in
one class; `runs.py` holds the files, `merging.py` the arithmetic, `manifest.py` what stands; `providers.py` names it in
a wiring.
"""
