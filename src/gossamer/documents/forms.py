"""Fills in forms of a page, and makes the request that a browser would send (HTML, 4.10.21, "form submission").

Place in the flow: :meth:`gossamer.documents.page.Page.form` makes a :class:`Form`, and a handler yields what :meth:`Form.submit`
returns. The module is pure: it sends nothing.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from gossamer.documents import charset as charsets
from gossamer.documents import legacy_encodings
from gossamer.documents.charset import UTF_8_QUERIES
from gossamer.values.errors import UsageError
from gossamer.values.request import Request

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

#: The value of a control: its text, whether it is checked, several values, a file as (name, bytes), or None to leave it out.
Value: TypeAlias = str | int | float | bool | Sequence[str] | tuple[str, bytes] | None

#: Controls of a form that are read. A page with more was made to cost time, or its body would not fit into a request.
MAX_CONTROLS = 10_000

#: Types of `input` that are sent only when they are clicked; `button` and `reset` never are.
_BUTTONS = frozenset(("submit", "image"))
_NEVER = frozenset(("button", "reset"))

#: Bytes that stand for themselves in a urlencoded form (URL standard, "application/x-www-form-urlencoded percent-encode set").
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789*-._")
_ESCAPED = ["+" if n == 0x20 else chr(n) if n in _PLAIN else f"%{n:02X}" for n in range(0x100)]

#: In the names of a multipart body, what would end them.
_IN_QUOTES = str.maketrans({"\n": "%0A", "\r": "%0D", '"': "%22"})


class FormControl(NamedTuple):
    """A control of a form that has a name."""

    name: str
    kind: str
    """The type of an `input`; `select`, `textarea` or `button`."""
    values: tuple[str, ...]
    """Values that the control sends unchanged; none if it is not checked."""
    value: str = ""
    """The value that a box sends when it is checked."""


class _File(NamedTuple):
    name: str
    content: bytes


class Form:
    """One form of a page. :attr:`fields` has the values that it sends if nothing is filled in."""

    def __init__(self, tree: "LexborHTMLParser", node: "LexborNode", url: str, charset: str, session: str = "") -> None:
        """Read a form.

        Args:
            tree: of the page.
            node: the form in it.
            url: the URL of the page, where a form without an action goes.
            charset: the encoding of the page, by the Encoding standard's name in lower case.
            session: that asked for the page, and sends the form.
        """
        self._session = session
        self._attributes = node.attributes
        self._url = url
        # Sent in the first encoding that it accepts and that there is, otherwise in its page's.
        accepted = (self._attributes.get("accept-charset") or "").replace(",", " ").split()
        charset = next(filter(None, map(charsets.lookup, accepted)), charset)
        self._charset = "utf-8" if charset in UTF_8_QUERIES else charset
        nodes = _controls(tree, node)
        self._buttons = [one for one in nodes if _kind(one) in _BUTTONS]
        self._named = [control for one in nodes if _kind(one) not in _BUTTONS and (control := _read(one))]

    def __repr__(self) -> str:
        return f"<Form {self.method} {self.action}: {', '.join(dict.fromkeys(c.name for c in self._named))}>"

    @property
    def action(self) -> str:
        """The URL that the form is sent to, as the page wrote it; the page's own URL if the form names none."""
        return (self._attributes.get("action") or "").strip() or self._url

    @property
    def method(self) -> str:
        """`GET` or `POST`."""
        return "POST" if (self._attributes.get("method") or "").strip().lower() == "post" else "GET"

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Names and values that the form sends if nothing is filled in, in order, without those of buttons."""
        return [(control.name, value) for control in self._named for value in control.values]

    def submit(
        self,
        values: Mapping[str, Value] | None = None,
        /,
        *,
        button: str | None = "",
        extra: Mapping[str, str] | None = None,
        label: str = "",
        data: object = None,
        priority: int = 0,
        key: str = "",
        safe: bool | None = None,
        **more: Value,
    ) -> Request:
        """Return the request of the filled-in form. Hidden fields, checked boxes and chosen options are sent along.

        Args:
            values: by the names of controls, for names that are not Python words or that mean something else here. True and
                False check a box or not, a list chooses several options, `(name, bytes)` is a file, None leaves a control out.
            button: name, id or value of the button that is pressed; by default the first, None presses none.
            extra: fields that the page has no control for, since a script would add them.
            label: as of :class:`~gossamer.values.request.Request`; so are `data`, `priority`, `key` and `safe`.
            more: values of controls, as `user="me"`.

        Raises:
            UsageError: the form has no such control or button, or the request cannot be kept.
        """
        given = {**(values or {}), **more}
        known = list(dict.fromkeys(control.name for control in self._named))
        for name in given:
            if name not in known:
                raise UsageError(
                    f"the form has no control {name!r}{_nearest(name, known)}; give `extra` for a script's field"
                )
        pressed = self._pressed(button)
        entries = list(self._entries(given))
        if pressed is not None and (name := pressed.get("name") or ""):
            is_image = (pressed.get("type") or "").strip().lower() == "image"
            entries += [(f"{name}.x", "0"), (f"{name}.y", "0")] if is_image else [(name, pressed.get("value") or "")]
        entries.extend((extra or {}).items())
        asked = {"label": label, "data": data, "priority": priority, "key": key, "safe": safe, "session": self._session}
        request = self._request(entries, pressed or {}, asked)
        secret = {control.name for control in self._named if control.kind == "password"}
        request.has_password = any(name in secret and value for name, value in entries)
        return request

    def _request(
        self, entries: "list[tuple[str, str | _File]]", pressed: Mapping[str, str | None], asked: Mapping[str, Any]
    ) -> Request:
        method = (pressed.get("formmethod") or self._attributes.get("method") or "").strip().lower()
        if method == "dialog":
            raise UsageError("the form closes a dialogue of its page; it sends nothing")
        action = (pressed.get("formaction") or "").strip() or self.action
        texts = [(name, value.name if isinstance(value, _File) else value) for name, value in entries]
        if method != "post":
            query = _urlencoded(texts, self._charset)
            url = urlunsplit(urlsplit(action)._replace(query=query, fragment=""))
            return Request(url, **asked)
        kind = (pressed.get("formenctype") or self._attributes.get("enctype") or "").strip().lower()
        if kind == "multipart/form-data":
            body, kind = _multipart(entries, self._charset)
        elif kind == "text/plain":
            lines = "".join(f"{name}={value}\r\n" for name, value in texts)
            body = _encoded(lines, self._charset)
        else:
            kind = "application/x-www-form-urlencoded"
            body = _urlencoded(texts, self._charset).encode()
        return Request(action, method="POST", body=body, headers={"Content-Type": kind}, **asked)

    def _pressed(self, button: str | None) -> Mapping[str, str | None] | None:
        if button is None:
            return None
        every = [one.attributes for one in self._buttons if "disabled" not in one.attributes]
        if not button:
            return next(iter(every), None)
        for attributes in every:
            if button in (attributes.get("name"), attributes.get("id"), attributes.get("value")):
                return attributes
        known = [name for one in every if (name := one.get("name") or one.get("id") or one.get("value"))]
        raise UsageError(f"the form has no button {button!r}{_nearest(button, known)}")

    def _entries(self, given: Mapping[str, Value]) -> "Iterator[tuple[str, str | _File]]":
        """The entries to send, in the order of the page. A given value stands where the first control of its name does."""
        done: set[str] = set()
        for control in self._named:
            name = control.name
            if name not in given:
                if control.kind == "hidden" and name.lower() == "_charset_":
                    yield name, self._charset
                    continue
                for value in control.values:
                    yield name, _File(value, b"") if control.kind == "file" else value
            elif isinstance(given[name], bool) and control.kind in ("checkbox", "radio"):
                if given[name] and name not in done:
                    yield name, control.value
            elif name not in done:
                for one in _given(name, given[name]):
                    yield name, one
            done.add(name)


def _given(name: str, value: Value) -> "list[str | _File]":
    if value is None:
        return []
    if isinstance(value, bool):
        raise UsageError(f"{name}={value!r}: the control is not a box to check; give its text")
    if isinstance(value, str | int | float):
        return [_lines(str(value))]
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], bytes):
        return [_File(str(value[0]), value[1])]
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return [_lines(str(one)) for one in value]
    raise UsageError(
        f"{name}: a control takes text, a number, True or False, a list of texts or a file, not {value!r:.100}"
    )


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    listed = f"; it has {', '.join(known[:20])}" if known else "; it has none with a name"
    return f"; did you mean {near[0]!r}?" if near else listed


# -- reading controls


def _controls(tree: "LexborHTMLParser", form: "LexborNode") -> "list[LexborNode]":
    """The controls that belong to a form, in document order: those inside it, and those that name it.

    In `<table><form><tr>` the parser leaves the form empty, as browsers do, which know its controls all the same. So an empty form
    has those behind it that are in no form, up to the next one.
    """
    inside = {one.mem_id for one in form.css("input, select, textarea, button")}
    in_forms = inside or {one.mem_id for one in tree.css("form *")}
    disabled = {one.mem_id for one in tree.css("fieldset[disabled] *, datalist *")}
    disabled -= {one.mem_id for one in tree.css("fieldset[disabled] > legend:first-of-type *")}
    own, is_behind, found = form.attributes.get("id") or "", False, []
    for one in tree.css("form, input, select, textarea, button"):
        if one.tag == "form":
            is_behind = one.mem_id == form.mem_id
            continue
        owner = one.attributes.get("form")
        if owner is not None:
            belongs = bool(own) and owner == own
        else:
            belongs = one.mem_id in inside or (not inside and is_behind and one.mem_id not in in_forms)
        if belongs and one.mem_id not in disabled and "disabled" not in one.attributes:
            found.append(one)
            if len(found) == MAX_CONTROLS:
                break
    return found


def _kind(node: "LexborNode") -> str:
    if node.tag == "input":
        return (node.attributes.get("type") or "text").strip().lower()
    if node.tag == "button":
        kind = (node.attributes.get("type") or "submit").strip().lower()
        return "submit" if kind not in _NEVER else kind
    return node.tag or ""


def _read(node: "LexborNode") -> FormControl | None:
    """A control with what it sends; None where it never sends anything."""
    attributes, kind = node.attributes, _kind(node)
    name = attributes.get("name") or ""
    if not name or kind in _NEVER:
        return None
    value = attributes.get("value")
    if kind in ("checkbox", "radio"):
        value = "on" if value is None else value
        return FormControl(name, kind, (value,) if "checked" in attributes else (), value)
    if kind == "select":
        options = [one for one in node.css("option") if "disabled" not in one.attributes]
        chosen = [one for one in options if "selected" in one.attributes]
        if "multiple" not in attributes:
            chosen = chosen[-1:] or options[:1]  # of a single choice the first, where none is chosen
        told = ((one, one.attributes.get("value")) for one in chosen)
        return FormControl(name, kind, tuple(" ".join(one.text().split()) if own is None else own for one, own in told))
    if kind == "textarea":
        return FormControl(name, kind, (_lines(node.text().removeprefix("\n")),))
    return FormControl(name, kind, ("" if kind == "file" else _lines(value or ""),))


# -- sending
def _lines(text: str) -> str:
    """Text with the line ends of forms."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")


def _encoded(text: str, charset: str) -> bytes:
    content = text.encode("utf-8", "replace")
    # As browsers send a character that the encoding lacks.
    return (
        content
        if charset == "utf-8"
        else legacy_encodings.encode(content.decode(), charset, lambda lacking: b"&#%d;" % ord(lacking))
    )


def _urlencoded(entries: Sequence[tuple[str, str]], charset: str) -> str:
    return "&".join(f"{_escaped(name, charset)}={_escaped(value, charset)}" for name, value in entries)


def _escaped(text: str, charset: str) -> str:
    return "".join([_ESCAPED[byte] for byte in _encoded(text, charset)])


def _multipart(entries: "Sequence[tuple[str, str | _File]]", charset: str) -> tuple[bytes, str]:
    """Body and media type. The boundary is made of the content, so that a form sent again is the same request."""
    parts: list[bytes] = []
    for name, value in entries:
        head = f'Content-Disposition: form-data; name="{_lines(name).translate(_IN_QUOTES)}"'
        if isinstance(value, _File):
            head += f'; filename="{value.name.translate(_IN_QUOTES)}"\r\nContent-Type: application/octet-stream'
            parts.append(_encoded(f"{head}\r\n\r\n", charset) + value.content + b"\r\n")
        else:
            parts.append(_encoded(f"{head}\r\n\r\n{value}\r\n", charset))
    boundary = b"form-" + blake2b(b"\0".join(parts), digest_size=20).hexdigest().encode()
    body = b"".join(b"--" + boundary + b"\r\n" + part for part in parts) + b"--" + boundary + b"--\r\n"
    return body, f"multipart/form-data; boundary={boundary.decode()}"
