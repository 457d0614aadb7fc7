"""The legacy encodings as the Encoding standard has them, where the codecs of Python differ from it.

Place in the flow: :mod:`gossamer.reading.charset` decodes documents by it, :mod:`gossamer.reading.queries` encodes the query
strings of their links. Tables are made of Python's codecs when they are first needed (20 ms for the largest), and hold one entry
for each character of an encoding. Numbers of sections are those of the standard.
"""

import codecs
from collections.abc import Callable, Mapping
from functools import lru_cache

import webencodings

Encoder = Callable[[str], bytes]
"""The bytes of one character; none where the encoding lacks it."""

#: Cells of JIS X 0208 with the extensions of NEC: 94 rows of 94, in EUC-JP as they are and in Shift_JIS two rows in one.
_ROW_OF_JIS = 94
_CELLS_OF_JIS = _ROW_OF_JIS**2
#: The cells of Shift_JIS up to where those for private use begin, and those of IBM behind these.
_CELLS_OF_SHIFT_JIS = (*range(8836), *range(10716, 11280))
#: NEC's second copy of IBM's characters, which the encoder of Shift_JIS passes over (5, "index Shift_JIS pointer").
_PASSED_OVER = range(8272, 8836)
#: What the encoders of Japanese take for something else (12.1.2, 12.2.2, 12.3.2).
_YEN, _OVERLINE, _MINUS, _FULL_MINUS = "\u00a5", "\u203e", "\u2212", "\uff0d"
_HALF_WIDTH = "".join(map(chr, range(0xFF61, 0xFFA0)))
#: The same letters in full width, which ISO-2022-JP has instead (5, "index ISO-2022-JP katakana").
_FULL_WIDTH = (
    "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタ"
    "チツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜"
)
_WIDENED = str.maketrans(_HALF_WIDTH, _FULL_WIDTH)

#: Cells of Big5: those in front are Hong Kong's, which are read and never written (5, "index Big5 pointer").
_CELLS_OF_BIG5 = range((0xA1 - 0x81) * 157, (0xFF - 0x81) * 157)
#: Of these, the last cell is written, not the first.
_LAST_IN_BIG5 = frozenset("\u2550\u255e\u2561\u256a\u5341\u5345")
#: Pictures of control characters and a few signs of Hong Kong, for which no codec of Python has the standard's cell.
_ONLY_IN_BIG5 = {
    **{chr(0x2400 + n): bytes([0xA3, 0xC0 + n]) for n in range(32)},
    "\u2421": b"\xa3\xe0",
    "\u5ef4": b"\xc6\xcf",
    "\u65e0": b"\xc6\xd3",
    "\u7676": b"\xc6\xd5",
    "\u96b6": b"\xc6\xd7",
    "\u4edd": b"\xc6\xdf",
    "\u5605": b"\xfb\x48",
    "\u5ed0": b"\xfb\xf9",
    "\u60a4": b"\xfc\x6c",
    "\u732a": b"\xfe\x52",
}
#: Cells in which Python's codec has kana that the standard has elsewhere.
_OTHER_IN_BIG5 = frozenset({*_ONLY_IN_BIG5.values(), b"\xc6\xde"})

#: Letters that the standard has where Python's codecs have nothing, or a line of a box.
_ADDED = {"koi8-u": {"\u045e": b"\xae", "\u040e": b"\xbe"}, "windows-1255": {"\u05ba": b"\xca"}}

#: What is read otherwise than by Python's codecs, as far as one letter stands for one cell: theirs, and the standard's.
_READ = {
    "koi8-u": ("\u255d\u256c", "\u045e\u040e"),
    "jis": ("\u2016\u2212\u301c\u00a2\u00a3\u00ac", "\u2225\uff0d\uff5e\uffe0\uffe1\uffe2"),
    "big5": (
        "\u203e\u2022\u2641\u2609\uff64\u223c\u00a2\u00a3\u00a5",
        "\u00af\u2027\u2295\u2299\ufe51\uff5e\uffe0\uffe1\uffe5",
    ),
}
#: Python has the edition of 2000, in which this letter and this place for private use are each other's (10.2).
_SWAPPED_IN_GB18030 = str.maketrans("\u1e3f\ue7c7", "\ue7c7\u1e3f")

_ESCAPES = {"ascii": b"\x1b(B", "roman": b"\x1b(J", "jis": b"\x1b$B"}


def encode(text: str, charset: str, stand_in: Callable[[str], bytes]) -> bytes:
    """The text in a legacy encoding.

    Args:
        text: without lone surrogates.
        charset: the encoding's name in lower case; neither UTF-8, UTF-16 nor `replacement`, which nothing is written in.
        stand_in: what to write for a character that the encoding lacks, in ASCII.
    """
    if charset == "iso-2022-jp":
        return _iso_2022_jp(text, stand_in)
    encoder = _encoder(charset)
    return b"".join([encoder(character) or stand_in(character) for character in text])


def decode(content: bytes, charset: str) -> str:
    """The text of a document in this encoding; what cannot be read becomes U+FFFD."""
    if charset in ("gbk", "gb18030"):  # one decoder for both (10.1.1)
        text = content.decode("gb18030", "gossamer-gb")
        return text.translate(_SWAPPED_IN_GB18030) if "\u1e3f" in text or "\ue7c7" in text else text
    if charset in ("euc-jp", "iso-2022-jp"):
        return _corrected(content.decode(charset, "gossamer-jis"), "jis")
    if charset == "big5":
        return _corrected(content.decode("big5hkscs", "gossamer-big5"), "big5")
    if charset.startswith("windows-"):
        return content.decode("cp874" if charset == "windows-874" else charset, "gossamer-windows")
    text, _ = webencodings.decode(content, webencodings.lookup(charset) or webencodings.UTF8, "replace")
    return _corrected(text, charset) if charset in _READ else text


def _corrected(text: str, reading: str) -> str:
    for theirs, ours in zip(*_READ[reading], strict=True):
        text = text.replace(theirs, ours)  # a search for one letter costs nothing where it is missing
    return text


def _failed(error: UnicodeError) -> tuple[bytes, int]:
    """The two bytes at which a codec stopped, and where they stand."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.start + 2], error.start


def _read_jis(error: UnicodeError) -> tuple[str, int]:
    """Characters of NEC's rows, which Python's codecs lack, in EUC-JP or in the seven bits of ISO-2022-JP."""
    pair, start = _failed(error)
    first = 0xA1 if pair > b"\xa0" else 0x21
    cell = (pair[0] - first) * _ROW_OF_JIS + pair[1] - first if len(pair) > 1 else -1
    is_one = len(pair) > 1 and all(first <= byte < first + _ROW_OF_JIS for byte in pair)
    return (_jis().get(cell, "\ufffd"), start + 2) if is_one else ("\ufffd", start + 1)


def _read_big5(error: UnicodeError) -> tuple[str, int]:
    """Cells that Hong Kong's codec lacks; the second byte of what is none is read again where it is ASCII (11.1.1)."""
    pair, start = _failed(error)
    return (_big5_read()[pair], start + 2) if pair in _big5_read() else ("\ufffd", start + 1)


def _read_windows(error: UnicodeError) -> tuple[str, int]:
    """Bytes to which Windows gives no character are control characters, as far as these go (9, the indexes of windows-*)."""
    (byte, *_), start = _failed(error)
    letter = "\u05ba" if byte == 0xCA else "\ufffd"  # free in Hebrew alone
    return chr(byte) if byte < 0xA0 else letter, start + 1


def _read_gb(error: UnicodeError) -> tuple[str, int]:
    """A byte that stands for the euro sign alone."""
    (byte, *_), start = _failed(error)
    return "€" if byte == 0x80 else "\ufffd", start + 1


codecs.register_error("gossamer-gb", _read_gb)
codecs.register_error("gossamer-jis", _read_jis)
codecs.register_error("gossamer-big5", _read_big5)
codecs.register_error("gossamer-windows", _read_windows)


@lru_cache
def _encoder(charset: str) -> Encoder:
    if charset == "shift_jis":
        return _from_table(_shift_jis())
    if charset == "euc-jp":
        return _from_table(_euc_jp())
    if charset == "big5":
        return _from_table(_big5())
    if charset == "gb18030":
        return _gb18030
    if charset == "gbk":
        return _gbk
    codec = (webencodings.lookup(charset) or webencodings.UTF8).codec_info
    letters = _ADDED.get(charset, {})
    has_controls = charset.startswith("windows-")

    def one(character: str) -> bytes:
        if character in letters:
            return letters[character]
        if charset == "koi8-u" and character in _READ[charset][0]:
            return b""
        try:
            return bytes(codec.encode(character, "strict")[0])
        except UnicodeEncodeError:
            if not has_controls or not "\x80" <= character < "\xa0":
                return b""
            byte = character.encode("latin-1")
            return byte if decode(byte, charset) == character else b""

    return one


def _from_table(table: Mapping[str, bytes]) -> Encoder:
    return lambda character: character.encode() if character < "\x80" else table.get(character, b"")


def _character(pair: bytes, codec: str) -> str:
    """What two bytes are in a codec of Python; nothing where they are no single character, or one for private use."""
    try:
        text = pair.decode(codec)
    except UnicodeDecodeError:
        return ""
    return text if len(text) == 1 and not "\ue000" <= text < "\uf900" else ""


def _in_shift_jis(cell: int) -> bytes:
    lead, trail = divmod(cell, 188)
    return bytes([lead + (0x81 if lead < 0x1F else 0xC1), trail + (0x40 if trail < 0x3F else 0x41)])


@lru_cache
def _jis() -> Mapping[int, str]:
    """Cells of JIS X 0208 as Microsoft's Shift_JIS has them, which is the standard's index."""
    read = {cell: _character(_in_shift_jis(cell), "cp932") for cell in _CELLS_OF_SHIFT_JIS}
    return {cell: character for cell, character in read.items() if character}


def _shift_jis() -> Mapping[str, bytes]:
    table: dict[str, bytes] = {"\x80": b"\x80", _YEN: b"\\", _OVERLINE: b"~"}
    table |= {letter: bytes([0xA1 + n]) for n, letter in enumerate(_HALF_WIDTH)}
    for cell, character in _jis().items():
        if cell not in _PASSED_OVER:
            table.setdefault(character, _in_shift_jis(cell))
    table[_MINUS] = table[_FULL_MINUS]
    return table


@lru_cache
def _euc_jp() -> Mapping[str, bytes]:
    table: dict[str, bytes] = {_YEN: b"\\", _OVERLINE: b"~"}
    table |= {letter: bytes([0x8E, 0xA1 + n]) for n, letter in enumerate(_HALF_WIDTH)}
    for cell, character in _jis().items():
        if cell < _CELLS_OF_JIS:
            row, place = divmod(cell, _ROW_OF_JIS)
            table.setdefault(character, bytes([row + 0xA1, place + 0xA1]))
    table[_MINUS] = table[_FULL_MINUS]
    return table


def _big5() -> Mapping[str, bytes]:
    table = dict(_ONLY_IN_BIG5)
    for cell in _CELLS_OF_BIG5:
        lead, trail = divmod(cell, 157)
        pair = bytes([lead + 0x81, trail + (0x40 if trail < 0x3F else 0x62)])
        if pair in _OTHER_IN_BIG5:
            continue
        # Where Hong Kong has filled a gap, its codec is right; elsewhere that of Microsoft.
        is_filled = b"\xc6\xa1" <= pair < b"\xc9\x40" or pair >= b"\xf9\xd6"
        order = ("big5hkscs", "cp950") if is_filled else ("cp950", "big5hkscs")
        character = _character(pair, order[0]) or _character(pair, order[1])
        if character in _LAST_IN_BIG5:
            table[character] = pair
        elif character:
            table.setdefault(character, pair)
    return table


@lru_cache
def _big5_read() -> Mapping[bytes, str]:
    return {pair: character for character, pair in (*_ONLY_IN_BIG5.items(), ("€", b"\xa3\xe1"))}


def _gb18030(character: str) -> bytes:
    if character == "\ue5e5":
        return b""  # a second place of the space (10.2.2)
    return character.translate(_SWAPPED_IN_GB18030).encode("gb18030")


def _gbk(character: str) -> bytes:
    if character == "€":
        return b"\x80"
    encoded = _gb18030(character)
    return encoded if len(encoded) < 4 else b""


def _iso_2022_jp(text: str, stand_in: Callable[[str], bytes]) -> bytes:
    """Section 12.2.2: escapes tell which set the next bytes are of, and the text ends in ASCII."""
    table, made, state = _euc_jp(), [], "ascii"
    for character in text.translate(_WIDENED):
        if character in "\x0e\x0f\x1b":
            wanted, encoded = "ascii", stand_in("\ufffd")
        elif character in (_YEN, _OVERLINE):
            wanted, encoded = "roman", table[character]
        elif character < "\x80":
            # The other two signs of ASCII are those that Roman has instead.
            wanted = "roman" if state == "roman" and character not in "\\~" else "ascii"
            encoded = character.encode()
        elif character in table:
            wanted, encoded = "jis", bytes(byte & 0x7F for byte in table[character])
        else:
            wanted, encoded = state if state == "roman" else "ascii", stand_in(character)
        if wanted != state:
            made.append(_ESCAPES[wanted])
            state = wanted
        made.append(encoded)
    return b"".join(made) + (_ESCAPES["ascii"] if state != "ascii" else b"")
