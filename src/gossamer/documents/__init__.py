"""Documents: from the bytes of a body to its type, charset, links, text and fingerprints. Pure, apart from bodies on
the disk.

Place in the flow: protocol modules undo codings here (:mod:`content_coding`), processors read pages (:mod:`document`,
:mod:`skim`), and :mod:`text` gives its words. Links, title, base and robots tags come from one skim of the
bytes; a tree is built only for those who ask. All that is called *markup* is well-formed UTF-8.

Promises: each reader is linear in the document; what could be dear is refused or read in a process that can be killed
(:mod:`document` says which); a limit that cuts something says so.

Open first: :mod:`document`.
"""
