"""The chore that bundles schema.org's context writes what the context says, and refuses what it could not write."""

import json
from pathlib import Path
from typing import Any

import pytest

from gossamer.rdf import schema_org_terms
from tools.chores.docs import TERMS, NotExpressible, module_of, schema_org

CONTEXT: dict[str, Any] = {
    "@vocab": "http://schema.org/",
    "type": "@type",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "schema": "http://schema.org/",
    "HTML": {"@id": "rdf:HTML"},
    "Person": {"@id": "schema:Person"},
    "url": {"@id": "schema:url", "@type": "@id"},
    "birthDate": {"@id": "schema:birthDate", "@type": "Date"},
    "sent": {"@id": "schema:sent", "@type": "schema:DateTime"},
}


def values(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    exec(text, found)
    return found


def test_the_module_of_terms_has_all_that_is_more_than_its_own_name() -> None:
    found = values(module_of(CONTEXT, "99.5"))
    assert (found["VERSION"], "/99.5/" in found["SOURCE"]) == ("99.5", True)
    assert found["ALIASES"] == {"type": "@type", "HTML": "http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML"}
    assert found["PREFIXES"] == {"rdf": CONTEXT["rdf"], "schema": CONTEXT["schema"]}
    assert {kind: terms.split() for kind, terms in found["TYPED"].items()} == {
        "@id": ["url"],
        "http://schema.org/Date": ["birthDate"],
        "http://schema.org/DateTime": ["sent"],
    }


@pytest.mark.parametrize(
    "odd", [{"x": {"@id": "schema:x", "@container": "@list"}}, {"x": ["y"]}, {"x": {"@id": "schema:y", "@type": "@id"}},
            {"@vocab": "https://schema.org/"}]
)  # fmt: skip
def test_a_term_that_could_not_be_written_is_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(NotExpressible):
        module_of(CONTEXT | odd, "99.5")


def test_a_file_that_is_no_context_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = TERMS.read_bytes()
    for text in ("", "[]", '{"@context": 3}', "{}"):
        file = tmp_path / "context.jsonld"
        file.write_text(text)
        assert schema_org([str(file), "99.5"]) == 1
        assert capsys.readouterr().err.count("\n") == 1
    assert schema_org([]) == 2
    assert TERMS.read_bytes() == before


def test_the_bundled_terms_are_as_the_chore_writes_them() -> None:
    context: dict[str, Any] = {"@vocab": "http://schema.org/", **schema_org_terms.PREFIXES}
    context |= {
        term: value if value.startswith("@") else {"@id": value} for term, value in schema_org_terms.ALIASES.items()
    }
    for kind, terms in schema_org_terms.TYPED.items():
        context |= {term: {"@id": f"schema:{term}", "@type": kind} for term in terms.split()}
    assert module_of(json.loads(json.dumps(context)), schema_org_terms.VERSION) == TERMS.read_text(encoding="utf-8")
