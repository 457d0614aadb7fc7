"""Fetching: a task comes in, a visit with its response goes out, and the frontier hears that the host is free.

Place in the flow: a pool of workers (:mod:`fetch_stage`) fetches each task by the protocol module of its scheme: :mod:`http`,
:mod:`plain` (ftp and gopher), or that of files, beside the workers. A transfer (:mod:`transfer`) is one libcurl handle,
driven by :mod:`driver`; its head is judged before a byte of the body is taken (:mod:`response_head`), and its end becomes
an outcome by a table (:mod:`answer`). Names become addresses in :mod:`dns`; which addresses may be asked is decided in
:mod:`gossamer.values.addresses`.

Promises: every fetch ends in one named outcome; no server holds a worker beyond its deadlines or fills memory; secrets
go to the sites that they were given for.

Open first: :mod:`contract`, then :mod:`http`.
"""
