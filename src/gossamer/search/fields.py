"""The fields of the index, and how texts become terms.

A text stands in `text` as it is written, and in one of the `stem_` fields with the endings of its language taken off, so that
`run` finds `running` in English and leaves Finnish alone. Characters of Chinese, Japanese and Korean, which part no words,
stand one by one in `cjk`: a word of several is a phrase of them, which is exact where n-grams would be a guess, and smaller.
"""

import re

import tantivy

#: What the format of the index is called: an index of another one has to be made anew.
FORMAT = 1

#: Language -> the stemmer for it.
STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "nb": "norwegian", "nn": "norwegian",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip

#: Bytes of the longest word that is a term: longer ones are data.
LONGEST_WORD = 80

#: A character of a script that parts no words.
CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f]")
_CJK_LETTER = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]"

#: Fields that words without a field are looked for in, and how much a find there counts.
WEIGHTS = {"title": 3.0, "text": 1.0, "anchors": 2.0, "cjk": 1.0}
_STEMMED = 0.8

#: What a document counts that nothing is known of; PageRank adds up to as much again (`gossamer rank`).
PLAIN_WEIGHT = 1.0

#: Term of the one document that is none: it holds how far the index is.
MARK = "mark"


def stem_field(language: str) -> str:
    """The field for words of a language without their endings; empty where there is no stemmer for it."""
    name = STEMMERS.get(language.partition("-")[0].lower(), "")
    return f"stem_{name}" if name else ""


def boosts() -> dict[str, float]:
    """Field -> how much a find in it counts."""
    return {**WEIGHTS, **{f"stem_{name}": _STEMMED for name in sorted({*STEMMERS.values()})}}


def schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in ("url", "visit", "kind"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("host", "site", "language", "mime", "type"):
        builder.add_text_field(name, stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    for name in ("title", "text", "anchors"):
        builder.add_text_field(name, stored=True, tokenizer_name="words")
    builder.add_text_field("cjk", tokenizer_name="cjk")
    for stemmer in sorted({*STEMMERS.values()}):
        builder.add_text_field(f"stem_{stemmer}", tokenizer_name=f"stem_{stemmer}")
    builder.add_unsigned_field("depth", stored=True, indexed=True, fast=True)
    builder.add_unsigned_field("extras", stored=True, fast=True)
    builder.add_date_field("fetched", stored=True, indexed=True, fast=True)
    builder.add_float_field("weight", stored=True, fast=True)
    builder.add_bytes_field("mark", stored=True)
    return builder.build()


def register(index: tantivy.Index) -> None:
    """Tell an index how texts become terms; it does not remember."""
    for name, analyzer in analyzers().items():
        index.register_tokenizer(name, analyzer)


def analyzers() -> dict[str, tantivy.TextAnalyzer]:
    """What makes terms of texts, by the names that the fields call it."""
    simple = (tantivy.Filter.remove_long(LONGEST_WORD), tantivy.Filter.lowercase())
    made = {
        "words": _analyzer(tantivy.Tokenizer.simple(), *simple, tantivy.Filter.ascii_fold()),
        "cjk": _analyzer(tantivy.Tokenizer.regex(_CJK_LETTER)),
    }
    for stemmer in {*STEMMERS.values()}:
        made[f"stem_{stemmer}"] = _analyzer(tantivy.Tokenizer.simple(), *simple, tantivy.Filter.stemmer(stemmer))
    return made


def _analyzer(tokenizer: tantivy.Tokenizer, *filters: tantivy.Filter) -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tokenizer)
    for one in filters:
        builder = builder.filter(one)
    return builder.build()


def parents(host: str) -> list[str]:
    """A host and every name above it of two parts and more: what `--host example.org` finds `www.example.org` by."""
    parts = host.split(".")
    if ":" in host or all(part.isdigit() for part in parts):
        return [host]  # an address has no parents
    return [".".join(parts[at:]) for at in range(max(1, len(parts) - 1))]
