"""Parts by choice that few crawls use: each proves that a part of a stranger needs no file of ours.

Place in the flow: seen sets in files of their own (:mod:`trie`, :mod:`bloom`), queues with a diversity threshold
(:mod:`diverse`), importance while the crawl runs (:mod:`opic`), and crawls that keep to a topic (:mod:`focus`). :mod:`options`
puts the trie, importance and topics into a crawl; the others are named in a wiring.

Open first: :mod:`options`, then the module of the part.
"""

from gossamer.engine.subjects import Subject

SUBJECT = Subject(
    name="labs",
    title="Topics and importance",
    example="gossamer crawl https://example.org/ --topic 'solar sail'",
    options="gossamer.labs.options:FocusOptions",
    wire="gossamer.labs.options:wire",
    wire_where=("strategy",),
    providers={
        "url-trie": "gossamer.labs.trie.queues:TrieSeen",
        "bloom-seen": "gossamer.labs.bloom:BloomSeen",
        "trie-queues": "gossamer.labs.trie.queues:TrieQueues",
        "diverse-queues": "gossamer.labs.diverse:DiverseQueues",
        "focus": "gossamer.labs.focus:Focus",
        "relevance-words": "gossamer.labs.focus:WordsRelevance",
        "opic-ledger": "gossamer.labs.opic:OpicLedger",
        "opic-queues": "gossamer.labs.opic:OpicQueues",
    },
)
