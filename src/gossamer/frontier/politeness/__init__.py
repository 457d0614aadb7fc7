"""Polite before fast: when may which host be asked. Decisions only: time is an argument, and there is no network.

Place in the flow: :mod:`provider` is the door for frontier and commit. :mod:`gates` puts the layers together: host
(:mod:`host_state`, :mod:`pace`, :mod:`congestion`), registered domain and address (:mod:`rate_slots`), and the crawl as
a whole (:mod:`whole_crawl`, :mod:`network`). :mod:`schedule` says whose turn it is; :mod:`retries` what becomes of a
page after its answer. Rules of others join by the role `rules`.

Open first: :mod:`rules`, then :mod:`gates`.
"""
