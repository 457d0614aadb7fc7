"""The kill loop: a crawl that is killed again and again, and what its web's own log says of it (docs/design/kills.md).

:mod:`site` is the web and the command that crawls it, :mod:`lives` starts and kills, :mod:`judging` holds what was seen against
what must hold, :mod:`loop` goes round until there were enough kills. `./gossamer dev kill-loop` runs it.
"""
