"""Robots exclusion (RFC 9309): may this URL be fetched, and when must the host's robots.txt be asked for again?

Pure modules and one provider, in the order in which a robots.txt goes through them::

    Response ──► provider.answered (the event that it is) ──► machine (what that means for the site, by one of the policies)
                                                                  │
                        bytes ──► rules (a value, kept with the site) ──► matching (one URL)
                                                                  │
                       frontier ◄── provider (contract.RobotsGate): allowed, denied, fetch first, wait

With `--robots-cache` the gate is that of :mod:`sharing`, which asks other crawls of the same user first.

Open first: :mod:`contract`, then :mod:`machine`.
"""
