"""Which language a text is in, as an ISO 639-1 code (the shortest BCP 47 tag). Decision 13 says how the library was chosen.

Three witnesses, in this order: the script, where only one language is written in it; statistics of letters, letters of few
languages and frequent words together, by the profiles of `resiliparse`, the table here and
:mod:`gossamer.documents.frequent_words`; and the page's own word, which decides among
languages that look alike and for texts that are too short. Library and words are imported on the first question.
"""

import re
from collections.abc import Sequence

#: Characters that are looked at; more do not make the answer better.
SAMPLE = 1_500

#: Letters below which a text says nothing and the page's own word counts: shorter ones are guessed wrongly one time in eight.
MIN_LETTERS = 50

#: Candidates among which the page's own word decides.
CANDIDATES = 3

#: Nearest languages that the library is asked for: in texts of 40 letters the right one is among them.
_ASKED_FOR = 30

#: Ranks of letter statistics that a text comes nearer to a language all of whose words are frequent ones of it. In ours it is a
#: third: 160 ranks, where neighbours differ by some 50. Anything from 300 to 1,500 is as good.
_WORDS_COUNT = 500

#: Ranks that a text is farther from a language that has none of its letters: a twentieth of a line in Ukrainian is not written
#: in Russian.
_LETTERS_COUNT = 1_500
#: Characters from which on the statistics are sure without these, and names from elsewhere more than a witness.
_SURE = 500

# Letters of few languages, among those of our words that share a script.
_LETTERS = (
    "їєґ:uk і:uk,be,kk ў:be,uz ыэ:ru,be,kk,ky,tt,ba,cv,mn јљњџ:sr,mk ђћ:sr ѓќѕ:mk қғ:kk,uz,tg,ba ә:kk,tt,ba "
    "өү:kk,ky,tt,ba,mn ığ:tr,az ə:az ş:tr,az,ku,ro ł:pl ąę:pl,lt ėįų:lt ķļņģ:lv ěřů:cs ľĺŕ:sk őű:hu țș:ro đ:hr,sr,vi "
    "ð:is,fo þ:is ß:de å:sv,da,no,fi ø:da,no,fo õ:pt,et,vi ñ:es,gl,eu,br ħġ:mt ơư:vi پچگ:fa,ur,ps,sd,ug,ku ٹڈںے:ur ځڅۍ:ps "
    "ळ:mr"
)
_WRITTEN_IN = {
    letter: frozenset(languages.split(","))
    for letters, _, languages in (word.partition(":") for word in _LETTERS.split())
    for letter in letters
}

#: Words that are looked at: 20 us. Of so many, a third is nearly always one of the frequent ones.
_MOST_WORDS = 120

#: Characters, spread over the text, by which its script is told: each script takes a look at all of them.
_SCRIPT_SAMPLE = 200

#: Share of the letters that must be of a script.
_SHARE = 0.25

# Scripts of one language, or of one that has nearly all pages in it. Japanese mixes kana with the characters of Chinese, so
# it comes first, with a smaller share. `re` compiles and keeps them when the first text needs them: 2.6 ms.
_SCRIPTS = (
    ("ja", "[\u3040-\u30ff]", 0.1),
    ("ko", "[\u1100-\u11ff\uac00-\ud7af]", _SHARE),
    ("zh", "[\u3400-\u4dbf\u4e00-\u9fff]", _SHARE),
    ("el", "[\u0370-\u03ff\u1f00-\u1fff]", _SHARE),
    ("th", "[\u0e00-\u0e7f]", _SHARE),
    ("ka", "[\u10a0-\u10ff]", _SHARE),
    ("hy", "[\u0530-\u058f]", _SHARE),
    ("ta", "[\u0b80-\u0bff]", _SHARE),
    ("bn", "[\u0980-\u09ff]", _SHARE),
    ("pa", "[\u0a00-\u0a7f]", _SHARE),
    ("or", "[\u0b00-\u0b7f]", _SHARE),
    ("dv", "[\u0780-\u07bf]", _SHARE),
    ("am", "[\u1200-\u137f]", _SHARE),
    ("bo", "[\u0f00-\u0fff]", _SHARE),
    ("te", "[\u0c00-\u0c7f]", _SHARE),
    ("kn", "[\u0c80-\u0cff]", _SHARE),
    ("ml", "[\u0d00-\u0d7f]", _SHARE),
    ("gu", "[\u0a80-\u0aff]", _SHARE),
    ("si", "[\u0d80-\u0dff]", _SHARE),
    ("km", "[\u1780-\u17ff]", _SHARE),
    ("my", "[\u1000-\u109f]", _SHARE),
    ("lo", "[\u0e80-\u0eff]", _SHARE),
)
_NO_LETTERS = bytes(code for code in range(256) if not chr(code).isalpha() or code > 127)

#: Share of letters that are not ASCII, below which no script of its own is looked for.
_FOREIGN = 0.1
_TAG = re.compile(r"([A-Za-z]{2,3})(?:[-_]|$)")


def detect(text: str, declared: str = "") -> str:
    """The language of a text; empty where nothing tells it.

    Args:
        text: of any length.
        declared: what the page says of itself (`lang`, `Content-Language`), as it stands there.
    """
    said = primary(declared)
    sample = text[:SAMPLE]
    ascii_letters, others = _letters(sample)
    letters = ascii_letters + others
    step = len(sample) // _SCRIPT_SAMPLE + 1
    written = _by_script(sample[::step], letters / step) if others > _FOREIGN * letters else ""
    if written:
        return written
    if letters < MIN_LETTERS:
        return said
    found = _by_letters(sample)
    if said in found[:CANDIDATES]:
        return said
    return found[0] if found else said


def primary(tag: str) -> str:
    """The language of a tag such as `de-AT`, in lower case; empty where it is none."""
    match = _TAG.match(tag.strip())
    return match[1].lower() if match else ""


#: The codes of ISO 639-1. Pages name languages that no statistics tell, so all of them can be asked for.
_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo "
    "es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki "
    "kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr "
    "nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg "
    "th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
CODES = frozenset(_CODES.split())


def _letters(sample: str) -> tuple[int, int]:
    """How many letters of ASCII there are, and how many characters of other kinds, which are letters nearly all."""
    plain = sample.encode("ascii", "ignore")
    return len(plain.translate(None, _NO_LETTERS)), len(sample) - len(plain)


def _by_script(sample: str, letters: float) -> str:
    for language, characters, share in _SCRIPTS:
        if len(re.findall(characters, sample)) > share * letters > 0:
            return language
    return ""


def _by_letters(sample: str) -> Sequence[str]:
    """The languages that a text is nearest to, by its letters and its frequent words; the nearest first."""
    from resiliparse.parse.lang import detect_fast

    from gossamer.documents.frequent_words import LANGUAGES, shares

    lowered = sample.lower()
    nearest = detect_fast(lowered if sample.isupper() else sample, n_results=_ASKED_FOR)
    told = shares(lowered.split(None, _MOST_WORDS)[:_MOST_WORDS])
    found = [pair for pair in nearest if pair[0] in LANGUAGES] if isinstance(nearest, list) else []
    if len(lowered) < _SURE and (met := _WRITTEN_IN.keys() & set(lowered)):
        strange = [(_WRITTEN_IN[letter], _LETTERS_COUNT * lowered.count(letter) // len(lowered)) for letter in met]
        found = [(name, ranks + sum(far for own, far in strange if name not in own)) for name, ranks in found]
    found.sort(key=lambda pair: pair[1] - _WORDS_COUNT * told.get(pair[0], 0.0))
    return [language for language, _ in found[:CANDIDATES]]
