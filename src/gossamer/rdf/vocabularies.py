"""Vocabularies whose implications are known: what their own documents say of sub-properties and sub-classes.

Dublin Core terms (2020), FOAF (2014) and SKOS (2009) are those of RDFa's initial context that imply anything worth having.
A page names a vocabulary with `vocab`; expansion is the reader's choice, and nothing is ever fetched.
"""

from gossamer.rdf.initial import PREFIXES

_DC, _FOAF, _SKOS = PREFIXES["dcterms"], PREFIXES["foaf"], PREFIXES["skos"]

# Each name, then what it implies: of the same vocabulary, or with the prefix of another.
_DC_TERMS = """
abstract description|accessRights rights|alternative title|available date|bibliographicCitation identifier
conformsTo relation|contributor dc11:contributor|coverage dc11:coverage|created date|creator contributor dc11:creator
date dc11:date|dateAccepted date|dateCopyrighted date|dateSubmitted date|description dc11:description
educationLevel audience|extent format|format dc11:format|hasFormat relation|hasPart relation|hasVersion relation
identifier dc11:identifier|isFormatOf relation|isPartOf relation|isReferencedBy relation|isReplacedBy relation
isRequiredBy relation|issued date|isVersionOf relation|language dc11:language|license rights|mediator audience
medium format|modified date|publisher dc11:publisher|references relation|relation dc11:relation|replaces relation
requires relation|rights dc11:rights|source relation dc11:source|spatial coverage|subject dc11:subject
tableOfContents description|temporal coverage|title dc11:title|type dc11:type|valid date
"""
_FOAF_TERMS = """
Person Agent|Group Agent|Organization Agent|Image Document|PersonalProfileDocument Document
OnlineChatAccount OnlineAccount|OnlineEcommerceAccount OnlineAccount|OnlineGamingAccount OnlineAccount
aimChatID nick|icqChatID nick|msnChatID nick|yahooChatID nick|skypeID nick|name rdfs:label|img depiction
homepage page isPrimaryTopicOf|isPrimaryTopicOf page|openid isPrimaryTopicOf|weblog page|tipjar page
"""
_SKOS_TERMS = """
prefLabel rdfs:label|altLabel rdfs:label|hiddenLabel rdfs:label|changeNote note|definition note|editorialNote note
example note|historyNote note|scopeNote note|broader broaderTransitive|narrower narrowerTransitive
broaderTransitive semanticRelation|narrowerTransitive semanticRelation|related semanticRelation
mappingRelation semanticRelation|closeMatch mappingRelation|exactMatch closeMatch|broadMatch mappingRelation broader
narrowMatch mappingRelation narrower|relatedMatch mappingRelation related|topConceptOf inScheme
OrderedCollection Collection
"""


def _read(vocabulary: str, terms: str) -> dict[str, tuple[str, ...]]:
    """The implications of a table above."""

    def iri(name: str) -> str:
        prefix, colon, local = name.partition(":")
        return PREFIXES[prefix] + local if colon else vocabulary + name

    rows = [row.split() for line in terms.strip().splitlines() for row in line.split("|")]
    return {iri(name): tuple(map(iri, implied)) for name, *implied in rows}


VOCABULARIES = {
    _DC: _read(_DC, _DC_TERMS),
    _FOAF: _read(_FOAF, _FOAF_TERMS),
    _SKOS: _read(_SKOS, _SKOS_TERMS),
}
