"""Words, titles and statements of simulated pages, encoded and cut ready for use.

Place in the flow: `render` joins a page from paragraphs made here, in eight languages. A pool of paragraphs exists once for each
language and charset; a page takes every n-th one from its own starting place, so that the pages of a web share hardly any run of
paragraphs, and near-duplicates are those that we make. What a page states in structured data are texts that follow from its
number, all in one way: RDFa, JSON-LD or microdata, by turns. The auditor knows by them which triples a crawl has to find.
"""

import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Final

from gossamer.simweb.page import path_of
from gossamer.values.hosts import Remembered

#: The predicate of all statements.
SAID: Final = "http://schema.org/name"

#: How a page says texts: each makes one triple of a text.
SYNTAXES: Final[tuple[Callable[[list[str]], str], ...]] = (
    lambda texts: "".join(f'<p property="{SAID}">{text}</p>' for text in texts),
    lambda texts: f'<script type="application/ld+json">{{"@id": "", "{SAID}": {json.dumps(texts)}}}</script>',
    lambda texts: f"<div itemscope>{''.join(f'<b itemprop={SAID}>{text}</b>' for text in texts)}</div>",
)
"""RDFa, JSON-LD and microdata."""


def texts_of(shown: int, count: int) -> list[str]:
    """Return what a page states: `count` texts, each of which makes one triple.

    Args:
        shown: index of the page whose content it is; copies state what their original does.
        count: the web's `statements`.
    """
    return [f"statement {number} of page {shown}" for number in range(count)]


def markup_of(shown: int, count: int) -> bytes:
    """Return the same as a piece of a page."""
    return SYNTAXES[shown % len(SYNTAXES)](texts_of(shown, count)).encode()


WORDS: Final = {
    "en": "the of and to in a is that for it as was with be by on not he his but at are this have "
    "from or had an they which one you were all her she there would their we him been has when who "
    "will no more if out so said what up its about into than them can only other new some could "
    "time these two may then do first any my now such like our over man me even most made after "
    "harbour lantern meadow orchard compass bridge river signal archive garden weather station",
    "es": "el de la que y en un ser se no haber por con su para como estar tener le lo todo pero "
    "más hacer o poder decir este ir otro ese si me ya ver porque dar cuando él muy sin vez mucho "
    "saber qué sobre mi alguno mismo también hasta año dos querer entre así primero desde grande "
    "puente río señal jardín estación mañana camino montaña bosque linterna brújula huerto",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es "
    "an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum "
    "war haben nur oder aber vor zur bis mehr durch man sein wurde Brücke Fluss Zeichen Garten "
    "Wetter Bahnhof Wiese Laterne Straße Größe Mühle Hafen",
    "fr": "le de un être et à il avoir ne je son que se qui ce dans en du elle au pour pas vous par "
    "sur faire plus dire me on mon lui nous comme mais pouvoir avec tout y aller voir bien où sans "
    "tu ou leur homme si deux mari moi vouloir été pont rivière signal jardin météo gare forêt "
    "lanterne boussole château fenêtre verger",
    "pt": "o de a que e do da em um para é com não uma os no se na por mais as dos como mas foi ao "
    "ele das tem à seu sua ou ser quando muito há nos já está eu também só pelo pela até isso ela "
    "entre era depois sem mesmo aos ter ponte rio sinal jardim estação manhã caminho lanterna "
    "bússola coração floresta",
    "ru": "и в не на я быть он с что а по это она этот к но они мы весь который из у то за свой "
    "от так для ты же все тот мочь год один такой тогда только себя ещё какой когда уже вот мост "
    "река сигнал сад погода станция луг фонарь компас гавань лес дорога",
    "ja": "これ それ 日本 時間 東京 天気 駅 庭 川 橋 山 森 海 町 人 仕事 学校 新聞 電車 "
    "今日 明日 昨日 写真 音楽 言葉 世界 問題 生活 研究 社会 歴史 文化 です ます した ある "
    "いる する なる は が を に で と も",
    "zh": "的 一 是 不 了 在 人 有 我 他 这 个 们 中 来 上 大 为 和 国 地 到 以 说 时 要 就 "
    "出 会 可 也 你 对 生 能 而 子 那 得 于 着 下 自 之 年 天气 花园 车站 河流 森林 城市 "
    "学校 历史 文化",
}
"""Common words of each language, most frequent first, with some that make a better title."""

SENTENCES: Final = 1024
"""Sentences that a language's paragraphs are put together from: few enough to be made at once when the first page asks."""

PARAGRAPHS: Final = 1024
"""Paragraphs in a pool: enough that two pages of fifteen share a fifth of one on average."""

STRIDES: Final = 256
"""Different distances between a page's paragraphs in the pool."""

UNROLLED: Final = 16
"""Times that the pool is repeated end to end, so that a page of up to sixty paragraphs is one slice."""

PARAGRAPH_BYTES: Final = 1100
"""About how long a paragraph is once encoded; pages are whole paragraphs long."""

ITEMS: Final = 100_000
"""List items kept ready."""


class Pool:
    """The text of one language in one charset, as encoded bytes; made by `pool` once."""

    def __init__(self, language: str, charset: str) -> None:
        self.language, self.charset = language, charset
        self.words = WORDS[language].split()
        self._gap = "" if language in ("ja", "zh") else " "
        draw = Random(f"{language}/{charset}")
        sentences = [self._sentence(draw.random) for _ in range(SENTENCES)]
        made = []
        for _ in range(PARAGRAPHS):
            parts: list[bytes] = []
            while sum(map(len, parts)) < PARAGRAPH_BYTES:
                parts.append(sentences[int(draw.random() * SENTENCES)])
            made.append(b"<p>" + b"".join(parts) + b"</p>\n")
        self.mean = sum(map(len, made)) // PARAGRAPHS
        self.half = self.mean // 2
        self._unrolled = made * UNROLLED
        self._end = len(self._unrolled)
        self._firsts = [(word[0].upper() + word[1:] + self._gap).encode(charset) for word in self.words]
        self._seconds = [word.encode(charset) for word in self.words]
        self.anchors = [word.encode(charset) for word in self.words[-12:]]
        self.items = Remembered(self._item, ITEMS)
        """List items that link to a page of the same host, by the page's index. Paths do not depend on the host, and popular pages
        are linked often, so most of a page's links are found here ready-made."""

    def _item(self, index: int) -> bytes:
        return b'<li><a href="%b">%b</a>\n' % (path_of(index).encode(), self.anchors[index % len(self.anchors)])

    def _sentence(self, generator: Callable[[], float]) -> bytes:
        """Write one sentence: 8 to 20 words by Zipf's law."""
        count = len(self.words)
        length = 8 + int(generator() * 13)
        sentence = self._gap.join([self.words[int(count ** generator()) - 1] for _ in range(length)])
        return (sentence[0].upper() + sentence[1:] + ". ").encode(self.charset)

    def paragraph(self, bits: int) -> bytes:
        return self._unrolled[bits & PARAGRAPHS - 1]

    def paragraphs(self, bits: int, count: int) -> list[bytes]:
        """Return `count` paragraphs, at least one, chosen by `bits` (18 of them are used)."""
        start, stride = bits & PARAGRAPHS - 1, (bits >> 10 & STRIDES - 1) + 1
        count = count if count > 0 else 1
        end = start + count * stride
        if end <= self._end:
            return self._unrolled[start:end:stride]
        return [self._unrolled[k % PARAGRAPHS] for k in range(start, end, stride)]

    def title(self, bits: int, number: int) -> bytes:
        """Return a title of two common words and a token, from `number`, that no other page has."""
        count = len(self._firsts)
        return b"%b%b zq%d" % (self._firsts[bits % count], self._seconds[(bits >> 7) % count], number)


@cache
def pool(language: str, charset: str) -> Pool:
    return Pool(language, charset)
