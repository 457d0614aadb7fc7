"""Whether a page says anything that earlier pages of its host have not said.

Place in the flow: `watch` asks here of a page that leads on, for each owner of its parts. Two looks decide. The first is at the
words of a page without the host's template and the words of URLs: most pages of most hosts have some of their own. Where a page has
none, the second look is at the order of the words that it shares: a new text of old words says something, a form that is filled in
by a machine does not. No words are compared across tags, since lists that are sorted in another way are the commonest trap.
"""

from xxhash import xxh32_intdigest

from gossamer.contracts.template import HostTemplate
from gossamer.model.body import beginning
from gossamer.model.visit import Visit
from gossamer.reading.words import LOOKED_AT, marks_of, runs_of, words_of, words_of_urls
from gossamer.services.template import SAME, likeness_of, sketch_of
from gossamer.services.traps.memory import TrapHost

#: Marks of a page's own that are not worth the name: a counter spelt out, a name of a month.
NOTHING = 3

#: From what likeness on a remainder says what an earlier page has said.
LIKE = 0.8

#: URLs of a page whose words are left out of its own: a page with more is bounded work.
ECHOED = 500

#: Words in a row that are compared. Three occur together by chance in text of a hundred different words, four hardly ever.
RUN = 4

#: Runs that no earlier page has, from which on they are text: two sentences. Lines of a form with another word in them have fewer.
TEXT = 24

#: Pages of a host whose runs are remembered, each in 128 bytes. A trap that takes turns between texts has fewer.
REMEMBERED = 16


def says_nothing(visit: Visit, owner: str, host: TrapHost, template: HostTemplate) -> bool:
    """Whether a page says nothing that earlier ones of its owner have not said; `host` remembers what is compared."""
    content = beginning(visit.response.document, LOOKED_AT)
    words = words_of(content)
    echoes = words_of_urls((visit.url, *(task.url for task in visit.new[:ECHOED])))
    reading = template.read(owner, marks_of(words - echoes))
    if visit.duplicate_of or not reading.kinds:
        # A copy says nothing, and shows its kind. Of a host of which nothing is known, no page can differ.
        return True
    if not reading.earlier or (reading.size > NOTHING and reading.likeness < LIKE):
        return False
    own = {word for word in words if xxh32_intdigest(word) in reading.own}
    return not _is_new_text(marks_of(runs_of(content, RUN, echoes | own)), host)


def _is_new_text(runs: set[int], host: TrapHost) -> bool:
    """Whether enough of these runs are new, as far as remembered pages tell. The first page has none to differ from."""
    drawn = sketch_of(runs)
    likeness = likeness_of(drawn, host.told)
    is_first = not host.told
    if likeness < SAME:
        host.told.append(drawn.tobytes())
        del host.told[:-REMEMBERED]
    # Of two sets of one size with this likeness (Jaccard), so much of either is not in the other.
    new = len(runs) * (1 - likeness) / (1 + likeness)
    return not is_first and likeness < LIKE and new >= TEXT
