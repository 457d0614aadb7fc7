"""A trie of URLs on the disk (Ridgway 2010, sections 4.5, 4.6, 7.3.1; row R3): an exact seen set that knows prefixes,
and a queue.

:mod:`chunks <gossamer.labs.trie.chunks>` turns URLs into keys, says what a node is, and keeps chunks of nodes in files;
:mod:`tree <gossamer.labs.trie.tree>` is the trie. In :mod:`queues <gossamer.labs.trie.queues>` it is the seen set of a
crawl, and lets the tasks of a crawl take turns (`--strategy trie`).
"""
