"""The signs of RDFa and microdata among attributes: what the skim looks for on its way, and `gossamer.rdf.sign` reads.

They err to the safe side: a text that looks like such an attribute is a sign too.
"""

_SPACE = rb"[\t\n\f\r ]"

# `rel` says something to RDFa where it has a CURIE, an IRI or one of the terms of HTML; beside `vocab`, which is a sign by
# itself, any word will do.
RDFA = (
    rb"(?:property|typeof|vocab|inlist)%(s)s*="
    rb"|rel%(s)s*=[^<>=]*(?::|license|describedby|role)"
    rb"|rev%(s)s*=" % {b"s": _SPACE}
)
MICRODATA = rb"itemscope|itemprop"

#: Any of them, in whatever case; each begins with a letter.
ANY = b"(?i:" + RDFA + b"|" + MICRODATA + b")"
