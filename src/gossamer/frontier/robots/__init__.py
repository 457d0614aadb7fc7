"""Robots exclusion (RFC 9309): may this URL be fetched, and when must the host's robots.txt be asked for again?

Pure modules and one provider, in the order in which a robots.txt goes through them::

    Response ──► answers (what came of the request) ──► machine (what that means for the site, by a policy)
                                                            │
       bytes ──► reading (lines and groups) ──► rules (a value, kept with the site) ──► matching (one URL)
                                                            │
                       frontier ◄── provider (contracts.robots.RobotsGate): allowed, denied, fetch first, wait
"""
