"""What is done with triples once they are all there: patterns that are copied, vocabularies that are expanded.

Both follow the documents: property copying is section 3.5 of HTML+RDFa 1.1, vocabulary expansion section 10.1 of RDFa Core
1.1. Vocabularies are never fetched; those that are known are in :mod:`gossamer.rdf.vocabularies`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from gossamer.model.visit import Triple
from gossamer.rdf.terms import RDFA, TYPE, USES_VOCABULARY, Full, Gathered

COPY = f"{RDFA}copy"
PATTERN = f"{RDFA}Pattern"

#: What follows from a name: those of properties and classes alike, each name to all that it implies.
Implications = Mapping[str, tuple[str, ...]]


def copy_patterns(gathered: Gathered) -> None:
    """Give each subject what the patterns say that it copies, and take the patterns out."""
    triples = gathered.triples
    if not any(predicate == COPY for _, predicate, *_ in triples):
        return
    patterns = {subject for subject, predicate, value, *_ in triples if predicate == TYPE and value == PATTERN}
    said: dict[str, list[Triple]] = defaultdict(list)
    for triple in triples:
        if triple[0] in patterns and not (triple[1] == TYPE and triple[2] == PATTERN):
            said[triple[0]].append(triple)
    waiting = [(subject, value) for subject, predicate, value, *_ in triples if predicate == COPY and value in patterns]
    done = set(waiting)
    used = {pattern for _, pattern in waiting}
    try:
        while waiting:
            subject, pattern = waiting.pop()
            for _, predicate, value, datatype, language in said[pattern]:
                if predicate != COPY:
                    gathered.add(subject, predicate, value, datatype, language)
                elif value in patterns and (subject, value) not in done:
                    gathered.count_item()
                    done.add((subject, value))
                    used.add(value)
                    waiting.append((subject, value))
    except Full:
        pass  # counted; the patterns go all the same
    for triple in [triple for triple in triples if _is_spent(triple, used)]:
        del triples[triple]


def _is_spent(triple: Triple, used: set[str]) -> bool:
    return triple[0] in used or (triple[1] == COPY and triple[2] in used)


def expand(gathered: Gathered, vocabularies: Mapping[str, Implications]) -> None:
    """Add what the vocabularies that the page uses say of its properties and types.

    Args:
        gathered: the triples, with one `rdfa:usesVocabulary` for each vocabulary.
        vocabularies: by their IRIs; one that is not among them is a warning.
    """
    used = [value for _, predicate, value, *_ in gathered.triples if predicate == USES_VOCABULARY]
    implied: dict[str, tuple[str, ...]] = {}
    for vocabulary in used:
        if vocabulary in vocabularies:
            implied.update(vocabularies[vocabulary])
        else:
            gathered.warn("VocabReferenceError", vocabulary)
    if not implied:
        return
    try:
        for subject, predicate, value, datatype, language in list(gathered.triples):
            for more in closure(predicate, implied):
                gathered.add(subject, more, value, datatype, language)
            if predicate == TYPE:
                for more in closure(value, implied):
                    gathered.add(subject, TYPE, more)
    except Full:
        pass  # counted


def closure(name: str, implied: Implications) -> Iterable[str]:
    """All that a name implies, through any number of steps, without itself."""
    found: dict[str, None] = {}
    waiting = list(implied.get(name, ()))
    while waiting:
        following = waiting.pop()
        if following not in found and following != name:
            found[following] = None
            waiting.extend(implied.get(following, ()))
    return found
