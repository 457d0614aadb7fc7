"""Rows of a crawl in databases of the user's own: mappings, drivers, and the consumer of feeds that keeps them."""
