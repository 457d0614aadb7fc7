"""A crawl: from options to a wiring, from a wiring to a run, from a run to its summary.

Place in the flow: :mod:`options` are compiled into a wiring (:mod:`compiling`), judged with directory and seeds before
anything is touched (:mod:`plan`), run (:mod:`crawl`, :mod:`work`) and summed up (:mod:`summary`). It is the only room
that imports concrete parts of the core, by the names of :mod:`catalog`. While it runs, a crawl listens at a private
socket (:mod:`control`). Tables and followers are made beside the run, in processes of their own
(:mod:`companions`, :mod:`followers`).

Promises: a crawl that cannot be is refused in one line before anything is made; a directory belongs to one crawl; a
crawl goes on after a kill, also one of an older version (:mod:`old_wirings`) or with lost files (:mod:`damage`).

Open first: :mod:`options`, then :mod:`compiling`.
"""
