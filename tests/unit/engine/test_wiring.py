"""The wiring as text and value: its form is checked, errors name file and key, and it is written back as it was."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.engine.errors import WiringError
from gossamer.engine.wiring import (
    ComponentPlan,
    ConnectorPlan,
    ProviderPlan,
    Wiring,
    from_plain,
    parse,
    read,
    to_toml,
    with_settings,
)

TEXT = """
description = "A test"
[providers.dns]
use = "resolver"
[connectors.tasks]
address = "priority:depth"
capacity = 3
[components.fetch]
use = "fetch"
workers = 64
instances = 2
process = "other"
on_error = "restart"
restarts = 1
ports = { tasks = "tasks" }
providers = { resolver = "dns", modules = { http = ["a", "b"], ftp = "c" } }
settings = { timeout = "120s" }
"""


def test_a_plan_is_read_with_its_defaults() -> None:
    wiring = parse(TEXT, "w.toml")
    assert wiring == Wiring(
        providers={"dns": ProviderPlan("resolver")},
        connectors={"tasks": ConnectorPlan("priority:depth", 3)},
        components={
            "fetch": ComponentPlan(
                "fetch",
                {"tasks": "tasks"},
                {"resolver": "dns", "modules": {"http": ["a", "b"], "ftp": "c"}},
                {"timeout": "120s"},
                workers=64,
                instances=2,
                process="other",
                on_error="restart",
                restarts=1,
            )
        },
        description="A test",
        source="w.toml",
    )
    assert wiring.processes == ("main", "other")
    assert parse("[connectors.x]").connectors["x"] == ConnectorPlan("local:", 256)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[components", "w: not TOML: "),
        (
            "component = 3",
            "w: unknown key 'component'; did you mean 'components'? Known: components, connectors, description, providers",
        ),
        ("components = 3", "w: components: is 3; it is a table of tables, as [components.NAME]"),
        ("description = 3", "w: description: is 3; it is a text"),
        ("[components]\nfetch = 3", "w: components.fetch: is 3; it is a table with the keys use, ports, "),
        (
            "[components.fetch]\nuse='f'\nworker=3",
            "w: components.fetch: unknown key 'worker'; did you mean 'workers'? Known: ",
        ),
        (
            "[connectors.tasks]\ncapacitiy=3",
            "w: connectors.tasks: unknown key 'capacitiy'; did you mean 'capacity'? Known: ",
        ),
        ("[components.fetch]\nworkers=3", "w: components.fetch: object missing required field `use`"),
        ("[components.fetch]\nuse='f'\nworkers=0", "w: components.fetch.workers: expected a whole number >= 1"),
        (
            "[components.fetch]\nuse='f'\nworkers='3'",
            "w: components.fetch.workers: expected a whole number, got a text",
        ),
        ("[components.fetch]\nuse='f'\nports={a=1}", "w: components.fetch.ports: expected a text, got a whole number"),
        (
            "[components.fetch]\nuse='f'\non_error='go on'",
            "w: components.fetch.on_error: invalid enum value 'go on'; one of: stop, restart",
        ),
        ("[connectors.tasks]\ncapacity=0", "w: connectors.tasks.capacity: expected a whole number >= 1"),
        ("[components.'a.b']\nuse='f'", "w: components.a.b: a name is made of letters, digits, - and _"),
        ("[connectors.'']", "w: connectors.: a name is made of letters, digits, - and _"),
    ],
)
def test_what_has_not_the_form_of_a_plan_is_refused_with_file_and_key(text: str, message: str) -> None:
    with pytest.raises(WiringError) as caught:
        parse(text, "w")
    assert str(caught.value).startswith(message)


def test_a_file_is_read_and_named_in_messages(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text(TEXT, encoding="utf-8")
    assert read(path).source == str(path)
    with pytest.raises(WiringError, match=r"missing\.toml cannot be read: No such file"):
        read(tmp_path / "missing.toml")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(WiringError, match=r"w\.toml: the file is in UTF-16; save it as UTF-8"):
        read(path)


def test_brackets_that_nest_too_deep_are_one_line_and_no_traceback() -> None:
    with pytest.raises(WiringError, match=r"w\.toml: not TOML: too many brackets within each other"):
        parse(f"a = {'[' * 100_000}", "w.toml")


def test_settings_are_replaced_in_a_copy() -> None:
    wiring = parse(TEXT)
    changed = with_settings(wiring, "fetch", {"timeout": 3, "agent": "G"})
    assert changed.components["fetch"].settings == {"timeout": 3, "agent": "G"}
    assert with_settings(wiring, "dns", {"x": 1}).providers["dns"].settings == {"x": 1}
    assert wiring == parse(TEXT)
    with pytest.raises(WiringError, match="wiring: there is no unit 'fech'; did you mean 'fetch'"):
        with_settings(wiring, "fech", {})


def test_a_setting_that_is_none_is_left_to_its_default_in_toml() -> None:
    wiring = with_settings(parse(TEXT), "fetch", {"pages": None})
    assert parse(to_toml(wiring)).components["fetch"].settings == {"timeout": "120s"}


def test_a_plan_is_written_back_as_it_was() -> None:
    assert parse(to_toml(parse(TEXT))) == parse(TEXT)


NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,12}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
SETTINGS = st.dictionaries(NAMES, VALUES, max_size=3)
ROLES = st.dictionaries(
    NAMES, NAMES | st.dictionaries(TEXTS, NAMES | st.lists(NAMES, max_size=3), max_size=3), max_size=3
)
PROVIDERS = st.builds(ProviderPlan, TEXTS, ROLES, SETTINGS)
CONNECTORS = st.builds(ConnectorPlan, TEXTS, st.integers(1, 2**40), SETTINGS)
COMPONENTS = st.builds(
    ComponentPlan,
    TEXTS,
    st.dictionaries(NAMES, NAMES, max_size=3),
    ROLES,
    SETTINGS,
    st.integers(1, 99),
    st.integers(1, 99),
    NAMES,
    st.sampled_from(["stop", "restart"]),
    st.integers(0, 9),
)


@given(
    st.builds(
        Wiring,
        st.dictionaries(NAMES, PROVIDERS, max_size=3),
        st.dictionaries(NAMES, CONNECTORS, max_size=3),
        st.dictionaries(NAMES, COMPONENTS, max_size=3),
        TEXTS,
    )
)
def test_every_plan_is_written_back_as_it_was(wiring: Wiring) -> None:
    assert parse(to_toml(wiring)) == wiring


@given(
    st.dictionaries(TEXTS, VALUES, max_size=3)
    | st.dictionaries(st.sampled_from(["components", "providers", "connectors"]), VALUES)
)
def test_any_other_data_is_refused_as_a_plan_in_words(plain: dict[str, Any]) -> None:
    try:
        from_plain(plain, "w")
    except WiringError as error:
        assert str(error).startswith("w: ")  # noqa: PT017  # a plan by chance is right, too


def test_a_long_list_of_a_wiring_reads_back_as_it_was() -> None:
    plain = [f"http://a.test/{number}" for number in range(1_500)]
    odd = [*plain, 'http://a.test/"\\', "\u00e4\n"]
    for urls in (plain, odd):
        wiring = with_settings(parse(TEXT), next(iter(parse(TEXT).components)), {"urls": urls, "others": plain})
        again = parse(to_toml(wiring))
        [unit] = [plan for plan in again.components.values() if "urls" in plan.settings]
        assert (unit.settings["urls"], unit.settings["others"]) == (urls, plain)
