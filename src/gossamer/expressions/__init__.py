"""The filter language: expressions about links, tasks and documents (rows M5, C9). For users: docs/filters.md.

Place in the flow: `expressions` asks for a compiled expression for each gate, `gossamer check-filter` shows what one
says. Text goes through `scanning` (words), `parsing` (a tree of `syntax`) and `compiling` (closures); `predicates` is
the vocabulary, `facts` says what is known where. The grammar::

    expression  = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation    = "not" negation | "(" expression ")" | test
    test        = name [ "(" value { "," value } ")" ] [ comparison value | "matches" value ]
    comparison  = "<" | "<=" | "=" | "!=" | ">=" | ">"
    value       = word | quoted text

Every step is linear in the text, and patterns are RE2: an expression from anybody can be compiled and run.
"""
