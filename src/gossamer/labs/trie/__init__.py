"""A trie of URLs on the disk (Ridgway 2010, sections 4.5, 4.6, 7.3.1; row R3): an exact seen set that knows prefixes,
and a queue.

:mod:`keys <gossamer.labs.trie.chunks>` turns URLs into keys, :mod:`nodes <gossamer.labs.trie.nodes>` says what a node
is and what a chunk of nodes looks like on the disk, :mod:`chunks <gossamer.labs.trie.chunks>` keeps chunks in files,
:mod:`tree <gossamer.labs.trie.tree>` is the trie, :mod:`queue <gossamer.labs.trie.provider>` its marks and turns, and
:mod:`provider <gossamer.labs.trie.provider>` the seen set of a crawl. :mod:`queues
<gossamer.labs.trie.queues>` lets the tasks of a crawl take turns (`--strategy trie`).
"""
