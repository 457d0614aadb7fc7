"""Campaigns: crawls that are killed, steered or signalled again and again, judged by their web's own log (docs/design/kills.md).

Place in the flow: :mod:`campaigns` is the table of their verbs, `./gossamer dev kill-loop` and the others. :mod:`site` is the web
and the command that crawls it, :mod:`judging` holds what was seen against what must hold, and :mod:`loop` starts, kills and
goes round until there were enough kills. Each other module plays one campaign.
"""
