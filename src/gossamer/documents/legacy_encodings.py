"""The legacy encodings as the Encoding standard has them, where the codecs of Python differ from it.

Place in the flow: :mod:`gossamer.documents.charset` decodes documents by it, :mod:`gossamer.documents.charset` encodes the query
strings of their links. Tables are made of Python's codecs when they are first needed (20 ms for the largest), and hold one entry
for each character of an encoding. Numbers of sections are those of the standard.
"""

import codecs
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial

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
#: Characters that the encoders of Japanese take for others (12.1.2, 12.2.2, 12.3.2).
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

#: Characters that Hong Kong added in 2008, in cells that follow each other from the first.
_FIRST_OF_2008 = 1000
_OF_2008 = (
    "㡵𡵓𣚞𦀡㻬𥣞㫵竼龗𤅡𨤍𣇪𠪊𣉞䌊蒄龖鐯䤰蘓墖靊鈘秐稲晠権袝瑌篅枂稬剏遆"
    "㓦珄𥶹瓆鿇垳䤯呌䄱𣚎堘穲𧭥讏䚮𦺈䆁𥶙箮𢒼鿈𢓁𢓉𢓌鿉蔄𣖻䂴鿊䓡𪷿拁灮鿋"
)
#: Cells in which Hong Kong has what Big5 has elsewhere, and their characters.
_TWICE_IN_BIG5 = bytes.fromhex(
    "8e69 8e6f 8e7e 8eab 8eb4 8ecd 8ed0 8f57 8f69 8f6e 8fcb 8fcc 8ffe 906d 907a 90dc 90f1 91bf 9244 92af 92b0 92b1 92b2 92c8 "
    "92d1 9447 94ca 95d9 9644 96ed 96fc 9b76 9b78 9b7b 9bc6 9bde 9bec 9bf6 9c42 9c53 9c62 9c68 9c6b 9c77 9cbc 9cbd 9cd0 9d57 "
    "9d5a 9dc4 9ea9 9eef 9efd 9f60 9f66 9fcb 9fd8 a063 a077 a0d5 a0df a0e4 c6de fa5f fa66 fabd fac5 fad5 fbb8 fbf3 fc4f fcb9 "
    "fce2 fcf1 fdb7 fdb8 fdbb fdf1 fe6f feaa fedd "
)
_ARE_TWICE = (
    "箸簆糎緒縝者耨菁蒨萏覦覩起都銹靜響鼖蔃兙兛兝兞鍮瑹浧禛邗靝瀞嬨爁矗纇駖釔惞澶輶侻"
    "營鄄鷰菏尐秣婧輋筑拐恢痹汊鬮鼗僭弌蠏拎瑨煢牐〃倩偽包卄卿婷幵彘撐晴杞沜渝港煮瑜瓩"
    "砉"
)

#: Letters that are read otherwise than by Python's codecs, as far as one letter stands for one cell: theirs, and the standard's.
_READ = {
    "koi8-u": ("\u255d\u256c", "\u045e\u040e"),
    "euc-jp": ("\u2016\u2212\u301c\u00a2\u00a3\u00ac", "\u2225\uff0d\uff5e\uffe0\uffe1\uffe2"),
    "shift_jis": ("\uf8f0\uf8f1\uf8f2\uf8f3", "\ufffd" * 4),
    "big5": (
        "\u203e\u2022\u2641\u2609\uff64\u223c\u00a2\u00a3\u00a5",
        "\u00af\u2027\u2295\u2299\ufe51\uff5e\uffe0\uffe1\uffe5",
    ),
}
#: Python has GB 18030 of 2000. In that of 2022, a letter and a place for private use are each other's, punctuation for vertical
#: lines and parts of letters have places of their own, and the standard has one more space (10.2; 5, "index gb18030").
_ADDED_IN_GB18030 = (
    "\ue78d\ue78e\ue78f\ue790\ue791\ue792\ue793\ue794\ue795\ue796\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864",
    "\ufe10\ufe12\ufe11\ufe13\ufe14\ufe15\ufe16\ufe17\ufe18\ufe19\u9fb4\u9fb5\u9fb6\u9fb7\u9fb8\u9fb9\u9fba\u9fbb",
)
_SWAPPED_IN_GB18030 = {"\u1e3f": "\ue7c7", "\ue7c7": "\u1e3f"}
_READ_IN_GB18030: dict[str, str] = (
    dict(zip(*_ADDED_IN_GB18030, strict=True)) | _SWAPPED_IN_GB18030 | {"\ue5e5": "\u3000"}
)
_WRITTEN_IN_GB18030: dict[str, str] = dict(zip(*reversed(_ADDED_IN_GB18030), strict=True)) | _SWAPPED_IN_GB18030
#: These letters: few texts have any, and `str.translate` would look up every letter of a text.
_OTHER_IN_GB18030 = re.compile(f"[{''.join(_READ_IN_GB18030)}]")

_ESCAPES = {"ascii": b"\x1b(B", "roman": b"\x1b(J", "jis": b"\x1b$B"}
#: The character set that is read behind an escape (12.2.1).
_ESCAPED = {b"(B": "ascii", b"(J": "roman", b"(I": "katakana", b"$@": "jis", b"$B": "jis"}
_ROMAN = {ord("\\"): _YEN, ord("~"): _OVERLINE}
#: Bytes of ISO-2022-JP that stand for a character by themselves, by state.
_SINGLE = {
    "ascii": {n: chr(n) for n in range(0x80) if n not in b"\x0e\x0f"},
    "roman": {n: _ROMAN.get(n, chr(n)) for n in range(0x80) if n not in b"\x0e\x0f"},
    "katakana": {0x21 + n: letter for n, letter in enumerate(_HALF_WIDTH)},
}

_SHIFTS = re.compile(rb"[\x0e\x0f]")

#: The first of two bytes of a character, by encoding.
_LEADS = {
    "big5": frozenset(range(0x81, 0xFF)),
    "euc-kr": frozenset(range(0x81, 0xFF)),
    "gb18030": frozenset(range(0x81, 0xFF)),
    "shift_jis": frozenset((*range(0x81, 0xA0), *range(0xE0, 0xFD))),
    "euc-jp": frozenset((0x8E, 0x8F, *range(0xA1, 0xFF))),
}


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
    if charset == "replacement":
        return "\ufffd" if content else ""  # 14.1: none of it is read
    if charset in ("gbk", "gb18030"):  # one decoder for both (10.1.1)
        text = content.decode("gb18030", "gossamer-gb18030")
        return _OTHER_IN_GB18030.sub(lambda other: _READ_IN_GB18030[other[0]], text)
    if charset == "iso-2022-jp":
        # Bytes between escapes are read by the last of them; two escapes with nothing between them are a fault (12.2.1).
        first, *others = content.split(b"\x1b")
        state, made, is_bare = "ascii", [_in_state("ascii", first)], False
        for part in others:
            escaped = _ESCAPED.get(part[:2], "")
            if not escaped or is_bare:
                made.append("\ufffd")
            state, rest = escaped or state, part[2:] if escaped else part
            is_bare = bool(escaped) and not rest
            made.append(_in_state(state, rest))
        return "".join(made)
    if charset in _CODECS:
        own, done, parts = _OWN_CELLS.get(charset, {}), 0, list[str]()
        if any(cell in content for cell in own):
            for cell in re.finditer(_CELL[charset], content):
                if letter := own.get(cell[0]):
                    parts += content[done : cell.start()].decode(_CODECS[charset], f"gossamer-{charset}"), letter
                    done = cell.end()
        parts.append(content[done:].decode(_CODECS[charset], f"gossamer-{charset}"))
        return _corrected("".join(parts), charset)
    if charset.startswith("windows-"):
        return content.decode("cp874" if charset == "windows-874" else charset, "gossamer-windows")
    text, _ = webencodings.decode(content, webencodings.lookup(charset) or webencodings.UTF8, "replace")
    return _corrected(text, charset)


#: Cells in which Python's codecs have a letter that stands in another cell as well, and the standard one of its own; and the cells
#: of a text, whatever stands between them.
_OWN_CELLS = {
    "big5": {b"\xa2\x41": "\u2215", b"\xa2\x42": "\ufe68"},
    "euc-jp": {b"\x8f\xa2\xb7": "\uff5e"},
}
_CELL = {
    "big5": rb"[\x81-\xfe][\x40-\x7e\x80-\xff]",
    "euc-jp": rb"\x8f[\xa1-\xfe][\x80-\xff]|[\x8e\x8f\xa1-\xfe][\x80-\xff]",
}


def _corrected(text: str, charset: str) -> str:
    for theirs, ours in zip(*_READ.get(charset, ((), ())), strict=True):
        text = text.replace(theirs, ours)  # a search for one letter costs nothing where it is missing
    return text


def _read_windows(error: UnicodeError) -> tuple[str, int]:
    """Bytes to which Windows gives no character are control characters, as far as these go (9, the indexes of windows-*)."""
    assert isinstance(error, UnicodeDecodeError)
    byte = error.object[error.start]
    letter = "\u05ba" if byte == 0xCA else "\ufffd"  # free in Hebrew alone
    return chr(byte) if byte < 0xA0 else letter, error.start + 1


def _read_pair(charset: str, error: UnicodeError) -> tuple[str, int]:
    """The text where a codec stopped, and the place where it goes on: behind both bytes, but an ASCII byte is read again
    (10.2.1, 11.1.1, 12.1.1, 12.3.1, 13.1.1)."""
    assert isinstance(error, UnicodeDecodeError)
    content, start = error.object, error.start
    pair = content[start : start + 2]
    if character := _only_read(charset).get(pair):
        return character, start + 2
    if pair[0] not in _LEADS[charset]:
        return "€" if charset == "gb18030" and pair[0] == 0x80 else "\ufffd", start + 1
    if charset == "gb18030" and pair[1:].isdigit():  # of four bytes that are no character all go by, or the first
        four = content[start : start + 4]
        is_lead = four[2:3] > b"\x80" and four[2:3] != b"\xff"
        is_none = is_lead and (len(four) < 4 or four[3:].isdigit())
        return "\ufffd", start + (len(four) if is_none or len(four) == 2 else 1)
    if charset == "euc-jp" and pair[0] == 0x8F and pair[1:] > b"\xa0" and pair[1:] != b"\xff":
        return "\ufffd", start + 2 + (content[start + 2 : start + 3] > b"\x7f")
    return "\ufffd", start + 1 + (pair[1:] > b"\x7f")


def _in_state(state: str, part: bytes) -> str:
    """Bytes of ISO-2022-JP without escapes."""
    if state == "ascii" and part.isascii() and not _SHIFTS.search(part):
        return part.decode("ascii")
    if state != "jis":
        return "".join([_SINGLE[state].get(byte, "\ufffd") for byte in part])
    made, at, cells = [], 0, _jis()
    while at < len(part):
        pair = part[at : at + 2]
        is_lead = 0x21 <= pair[0] <= 0x7E
        is_pair = is_lead and len(pair) > 1 and 0x21 <= pair[1] <= 0x7E
        made.append(cells.get((pair[0] - 0x21) * _ROW_OF_JIS + pair[1] - 0x21, "\ufffd") if is_pair else "\ufffd")
        at += 1 + is_lead
    return "".join(made)


@lru_cache
def _only_read(charset: str) -> Mapping[bytes, str]:
    """Characters of two bytes that an encoding has, and the codec of Python lacks."""
    if charset == "big5":
        cells = {pair: character for character, pair in (*_ONLY_IN_BIG5.items(), ("€", b"\xa3\xe1"))}
        cells |= {_big5_cell(cell): character for cell, character in enumerate(_OF_2008, _FIRST_OF_2008)}
        pairs = (_TWICE_IN_BIG5[at : at + 2] for at in range(0, len(_TWICE_IN_BIG5), 2))
        return cells | dict(zip(pairs, _ARE_TWICE, strict=True))
    if charset == "euc-jp":  # the rows of NEC
        return {_in_euc_jp(cell): character for cell, character in _jis().items() if cell < _CELLS_OF_JIS}
    return {}


#: The codecs of Python that read most of an encoding.
_CODECS = {"euc-jp": "euc-jp", "euc-kr": "cp949", "shift_jis": "cp932", "big5": "big5hkscs"}
for _charset in _LEADS:
    codecs.register_error(f"gossamer-{_charset}", partial(_read_pair, _charset))
codecs.register_error("gossamer-windows", _read_windows)


@lru_cache
def _encoder(charset: str) -> Encoder:
    if charset in ("shift_jis", "euc-jp"):
        return _from_table(_japanese(charset))
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
    """The character of two bytes in a codec of Python; nothing where they are no single one, or one for private use."""
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


def _in_euc_jp(cell: int) -> bytes:
    row, place = divmod(cell, _ROW_OF_JIS)
    return bytes([row + 0xA1, place + 0xA1])


@lru_cache
def _japanese(charset: str) -> Mapping[str, bytes]:
    """The characters of Shift_JIS or EUC-JP beside ASCII, and the signs that take two places of it."""
    is_euc = charset == "euc-jp"
    table: dict[str, bytes] = {_YEN: b"\\", _OVERLINE: b"~"} | ({} if is_euc else {"\x80": b"\x80"})
    half_width = b"\x8e" if is_euc else b""
    table |= {letter: half_width + bytes([0xA1 + n]) for n, letter in enumerate(_HALF_WIDTH)}
    for cell, character in _jis().items():
        if cell < _CELLS_OF_JIS if is_euc else cell not in _PASSED_OVER:
            table.setdefault(character, _in_euc_jp(cell) if is_euc else _in_shift_jis(cell))
    table[_MINUS] = table[_FULL_MINUS]
    return table


def _big5() -> Mapping[str, bytes]:
    table = dict(_ONLY_IN_BIG5)
    for cell in _CELLS_OF_BIG5:
        pair = _big5_cell(cell)
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


def _big5_cell(cell: int) -> bytes:
    lead, trail = divmod(cell, 157)
    return bytes([lead + 0x81, trail + (0x40 if trail < 0x3F else 0x62)])


def _gb18030(character: str) -> bytes:
    if character == "\ue5e5":
        return b""  # a second place of the space (10.2.2)
    return _WRITTEN_IN_GB18030.get(character, character).encode("gb18030")


def _gbk(character: str) -> bytes:
    if character == "€":
        return b"\x80"
    encoded = _gb18030(character)
    return encoded if len(encoded) < 4 else b""


def _iso_2022_jp(text: str, stand_in: Callable[[str], bytes]) -> bytes:
    """Section 12.2.2: escapes tell which set the next bytes are of, and the text ends in ASCII."""
    table, made, state = _japanese("euc-jp"), [], "ascii"
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
