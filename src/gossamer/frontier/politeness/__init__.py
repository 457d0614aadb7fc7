"""Politeness: when each host may be asked. It only decides: time is an argument, and there is no network.

Place in the flow: :mod:`provider` is the door for frontier and commit, and learns from every answer. :mod:`schedule` says whose
turn it is, by host (:mod:`places`; its delays, Crawl-delay among them, in :mod:`pace`), registered domain and address
(:mod:`places`), and the crawl as a whole with our own network (:mod:`whole_crawl`). :mod:`retries` says what becomes of a page
after its answer. Rules of others join by the role `rules`.

Open first: :mod:`rules`, then :mod:`schedule`.
"""
