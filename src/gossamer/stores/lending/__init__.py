"""Hosts that are lent to mobile crawlers: their URLs, and the ledger that gives them away."""
