"""Property sheets: built from what people write, changed while running, read by reflection; messages that help."""

import math
from typing import Annotated, Any, Literal

import msgspec
import pytest

from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import (
    HIDDEN,
    NoSettings,
    Sheet,
    build,
    change,
    nearest,
    parse,
    properties,
    setting,
    show_quantity,
    shown,
)
from gossamer.engine.unit import Unit


class FetchSheet(Sheet, frozen=True):
    """Samples of everything that a sheet may hold."""

    timeout: Annotated[float, setting("Seconds for a whole fetch.", unit="s", ge=0.1, le=3600)] = 120.0
    body: Annotated[int, setting("The most that is kept.", unit="bytes", ge=1)] = 16_000_000
    agent: Annotated[str, setting("Sent as User-Agent.", restart="it is part of open connections", min_length=1)] = "G"
    pages: Annotated[int, setting("Stop after so many.", unit="pages", ge=1)] | None = None
    follow: Annotated[bool, setting("Follow redirects.")] = True
    hosts: Annotated[tuple[str, ...], setting("Only these.")] = ()


class Words(Sheet, frozen=True):
    """Settings that take words of a closed list."""

    scope: Annotated[Literal["page", "host"], setting("How far.")] = "host"
    wait: Annotated[float | Literal["auto"], setting("How long.", unit="s")] = "auto"
    kept: Annotated[tuple[Literal["pages", "links"], ...], setting("What.")] = ()


class Waits(Sheet, frozen=True):
    """Numbers of all places that a setting may have them in."""

    wait: Annotated[float, setting("How long.", unit="s", ge=0)] | Literal["auto"] = "auto"
    waits: Annotated[dict[str, float], setting("How long at each.", unit="s")] = msgspec.field(default_factory=dict)
    steps: Annotated[tuple[float, ...], setting("How long in turn.", unit="s")] = ()


class Contact(Sheet, frozen=True):
    """One setting must be given."""

    contact: Annotated[str, setting("A URL that says who crawls.", pattern="^https?:")]


class Fetch(Unit[FetchSheet]):
    """A unit with settings."""


class Fast(Fetch):
    """Inherits them."""


class Bare(Unit[NoSettings]):
    """None."""


# -- building


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("scope", "hots", "setting 'scope': unknown value 'hots'; did you mean 'host'? Known: host, page"),
        ("kept", ["page"], "setting 'kept': unknown value 'page'; did you mean 'pages'? Known: links, pages"),
        ("scope", "it's", "setting 'scope': unknown value \"it's\"; known: host, page"),
        ("wait", "atuo", "setting 'wait': 'atuo' is not a quantity; write 10m, 90s, 250ms, 1.5h or 1h30m, or auto"),
    ],
)
def test_a_word_that_is_not_in_a_closed_list_is_refused_with_the_nearest(name: str, value: Any, says: str) -> None:
    with pytest.raises(SettingError) as caught:
        build(Words, {name: value})
    assert str(caught.value) == says


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, FetchSheet()),
        ({"timeout": "2m"}, FetchSheet(timeout=120)),
        ({"timeout": "250ms"}, FetchSheet(timeout=0.25)),
        ({"timeout": 5}, FetchSheet(timeout=5)),
        ({"body": "2MiB"}, FetchSheet(body=2 * 1024 * 1024)),
        ({"pages": "10"}, FetchSheet(pages=10)),
        ({"pages": "none"}, FetchSheet(pages=None)),
        ({"pages": None}, FetchSheet(pages=None)),
        ({"follow": "no"}, FetchSheet(follow=False)),
        ({"follow": "on"}, FetchSheet(follow=True)),
        ({"hosts": ["a", "b"]}, FetchSheet(hosts=("a", "b"))),
        ({"agent": "10m"}, FetchSheet(agent="10m")),
    ],
)
def test_plain_values_and_text_become_a_sheet(values: dict[str, Any], expected: FetchSheet) -> None:
    assert build(FetchSheet, values) == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"timout": 1},
            "unknown setting 'timout'; did you mean 'timeout'? Known: agent, body, follow, hosts, pages, timeout",
        ),
        ({"zzz": 1}, "unknown setting 'zzz'; known: agent, body, follow, hosts, pages, timeout"),
        (
            {"timeout": 0},
            "setting 'timeout' cannot be 0; give a number of seconds, at least 0.1 s, at most 1 h (Seconds for a whole fetch.)",
        ),
        (
            {"timeout": "10 parsecs"},
            "setting 'timeout': '10 parsecs' is not a quantity; write 10m, 90s, 250ms, 1.5h or 1h30m",
        ),
        (
            {"body": "0.5"},
            "setting 'body' cannot be 0.5; give a whole number of bytes, at least 1 B (The most that is kept.)",
        ),
        (
            {"pages": 0},
            "setting 'pages' cannot be 0; give a whole number of pages, at least 1 (Stop after so many.)",
        ),
        (
            {"follow": "perhaps"},
            "setting 'follow' cannot be 'perhaps'; give true or false (Follow redirects.)",
        ),
        (
            {"hosts": [1]},
            "setting 'hosts' cannot be [1]; give a list of texts (Only these.)",
        ),
        (
            {"agent": ""},
            "setting 'agent' cannot be ''; give a text, with a length of at least 1 (Sent as User-Agent.)",
        ),
        ({"body": "9" * 400}, "setting 'body': '" + "9" * 400 + "' is not a quantity; write 16MB, 512KiB or 1GB"),
    ],
)
def test_a_refused_setting_is_named_with_what_is_wrong_and_what_would_be_right(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingError) as caught:
        build(FetchSheet, values)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("wait", math.inf),
        ("wait", math.nan),
        ("wait", "inf"),
        ("waits", {"a.test": math.inf}),
        ("steps", [1.0, -math.inf]),
    ],
)
def test_a_number_that_is_infinite_or_none_is_refused_wherever_it_stands(name: str, value: object) -> None:
    """TOML has such numbers, and so has Python."""

    with pytest.raises(SettingError, match=f"setting '{name}'"):
        build(Waits, {name: value})


def test_a_sheet_whose_values_are_right_as_they_stand_is_made_without_its_annotations() -> None:
    class Untold(Sheet, frozen=True):
        name: str = "a"
        steps: tuple[float, ...] = ()

    made = build(Untold, {"name": "b", "steps": [1, 2.5]})
    Untold.__annotations__["steps"] = "NowhereToBeFound"
    assert build(Untold, {"name": "b", "steps": [1, 2.5]}) == made == Untold(name="b", steps=(1.0, 2.5))
    with pytest.raises(NameError):
        build(Untold, {"steps": "2.5"})  # a text has to be read by its type


def test_a_setting_without_default_must_be_given() -> None:
    with pytest.raises(SettingError) as caught:
        build(Contact, {})
    assert str(caught.value) == (
        "setting 'contact' is not set and has no default; give a text, matching ^https?: (A URL that says who crawls.)"
    )
    assert build(Contact, {"contact": "https://example.org"}).contact == "https://example.org"


def test_a_sheet_cannot_be_written_to() -> None:
    with pytest.raises(AttributeError):
        FetchSheet().timeout = 3  # type: ignore[misc]


# -- changing


def test_a_live_setting_changes_while_running_and_the_others_stay() -> None:
    before = FetchSheet(pages=5)
    after = change(before, {"timeout": "1m"}, running=True)
    assert after == FetchSheet(timeout=60, pages=5)
    assert before == FetchSheet(pages=5)


def test_a_restart_only_setting_is_refused_while_running_with_its_reason() -> None:
    with pytest.raises(SettingError) as caught:
        change(FetchSheet(), {"agent": "H"}, running=True)
    assert str(caught.value) == "setting 'agent' can change only with a restart: it is part of open connections"
    assert change(FetchSheet(), {"agent": "H"}, running=False).agent == "H"


def test_a_change_is_checked_like_a_new_sheet() -> None:
    with pytest.raises(SettingError, match="setting 'timeout' cannot be -1"):
        change(FetchSheet(), {"timeout": -1}, running=True)


# -- reflection


def test_reflection_tells_everything_that_a_watcher_shows() -> None:
    told = {prop.name: prop for prop in properties(FetchSheet)}
    assert [*told] == ["timeout", "body", "agent", "pages", "follow", "hosts"]
    timeout, agent, pages = told["timeout"], told["agent"], told["pages"]
    assert (timeout.type, timeout.unit, timeout.default, timeout.bounds) == ("float", "s", 120.0, ">= 0.1 s, <= 1 h")
    assert timeout.live
    assert timeout.doc == "Seconds for a whole fetch."
    assert not agent.live
    assert agent.reason == "it is part of open connections"
    assert (pages.type, pages.unit, pages.bounds, pages.doc) == ("int | None", "pages", ">= 1", "Stop after so many.")
    assert properties(Contact)[0].default is msgspec.NODEFAULT


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (16 * 2**20, "bytes", "16 MiB"),
        (256_000_000, "bytes", "256 MB"),
        (123_456_789, "bytes", "123456789 B"),
        (2e6, "bytes/s", "2 MB/s"),
        (30.0, "s", "30 s"),
        (5400, "s", "90 min"),
        (604_800, "s", "7 d"),
        (0.25, "s", "0.25 s"),
        (64, "requests", "64"),
        ("auto", "s", "auto"),
    ],
)
def test_a_default_is_written_with_its_unit_and_exactly(value: Any, unit: str, text: str) -> None:
    assert show_quantity(value, unit) == text
    assert value == "auto" or parse(text, unit) == value


def test_a_field_of_another_fields_type_says_only_what_differs() -> None:
    few = Annotated[int, setting("Stop after this many pages.", unit="pages", ge=1)] | None

    class Limits(Sheet, frozen=True):
        pages: Annotated[few, setting("Take this many.", restart="it has begun")] = None

    [prop] = properties(Limits)
    assert (prop.doc, prop.reason) == ("Take this many.", "it has begun")
    assert (prop.type, prop.unit, prop.bounds) == ("int | None", "pages", ">= 1")
    with pytest.raises(SettingError, match="at least 1"):
        build(Limits, {"pages": 0})


def test_a_unit_knows_the_class_of_its_sheet_and_has_a_default_one() -> None:
    assert Fetch.sheet_type is FetchSheet
    assert Fast.sheet_type is FetchSheet
    assert Fast().sheet == FetchSheet()
    assert Fast(FetchSheet(timeout=3)).sheet.timeout == 3
    assert Bare.sheet_type is NoSettings


def test_the_nearest_name_is_proposed_and_the_known_ones_are_listed() -> None:
    assert nearest("fech", ["fetch", "commit"]) == "; did you mean 'fetch'? Known: commit, fetch"
    assert nearest("x", ["fetch", "commit"]) == "; known: commit, fetch"
    assert nearest("x", []) == "; known: none"


def test_a_list_is_read_from_text_as_json_or_as_its_only_entry() -> None:
    class Listing(Sheet, frozen=True):
        names: Annotated[tuple[str, ...], setting("Names.")] = ()

    for text, names in (('["a", "b,c"]', ("a", "b,c")), ("a{1,2}", ("a{1,2}",)), ("", ())):
        assert build(Listing, {"names": text}).names == names
    with pytest.raises(SettingError, match="no JSON list"):
        build(Listing, {"names": "[a"})


class SecretSheet(Sheet, frozen=True):
    """A sheet with something to hide."""

    password: Annotated[str, setting("Said to nobody.", secret=True, min_length=3)] = ""
    fields: Annotated[tuple[str, ...], setting("Likewise.", secret=True)] = ()
    user: Annotated[str, setting("Anybody may know.")] = ""


def test_a_secret_is_shown_nowhere_and_what_was_shown_is_no_secret() -> None:
    given = SecretSheet(password="hunter2", fields=("hunter2", "hunter3"), user="me")
    expected = {"password": HIDDEN, "fields": [HIDDEN, HIDDEN], "user": "me"}
    assert shown(given) == expected
    assert shown(SecretSheet()) == {"password": "", "fields": (), "user": ""}
    assert "hunter" not in repr(given)
    for name in ("password", "fields"):
        with pytest.raises(
            SettingError, match=f"{name!r} was hidden when this wiring was printed; give its value again"
        ):
            build(SecretSheet, {name: expected[name]})
    for name, value in (("password", "h2"), ("fields", '["hunter2')):
        with pytest.raises(SettingError) as refusal:
            build(SecretSheet, {name: value})
        assert value not in str(refusal.value)
