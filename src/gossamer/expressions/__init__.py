"""The filter language: expressions about links, tasks and documents (rows M5, C9). For users: docs/filters.md.

Place in the flow: the filter `expressions` (:mod:`gossamer.parsing.filters`) asks for a compiled expression for each gate,
`gossamer check-filter` shows what one says. :mod:`syntax` makes a tree of the text and :mod:`compiling` closures of the tree,
by what is known at which gate; :mod:`predicates` is the vocabulary. The grammar::

    expression  = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation    = "not" negation | "(" expression ")" | test
    test        = name [ "(" value { "," value } ")" ] [ comparison value | "matches" value ]
    comparison  = "<" | "<=" | "=" | "!=" | ">=" | ">"
    value       = word | quoted text

Every step is linear in the text, and patterns are RE2: an expression of a stranger can be compiled and run.

Open first: :mod:`contract`, then :mod:`syntax`.
"""
