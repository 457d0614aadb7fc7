"""Robots exclusion (RFC 9309): whether a URL may be fetched, and when the host's robots.txt must be asked for again.

A robots.txt goes through pure modules and one provider in this order::

    Response ──► provider.answered (the event that it is) ──► machine (what that means for the site, by one of the policies)
                                                                  │
                        bytes ──► rules (a value, kept with the site, that judges each URL)
                                                                  │
                       frontier ◄── provider (contract.RobotsGate): allowed, denied, fetch first, wait

With `--robots-cache` the gate is that of :mod:`sharing`, which asks other crawls of the same user first.

Open first: :mod:`contract`, then :mod:`machine`.
"""
