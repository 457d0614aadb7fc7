"""Whoever installs Gossamer gets permissively licensed code only."""

import importlib.metadata
import re

import pytest
from packaging.markers import Marker

from tools.chores import release

PERMISSIVE = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "PSF-2.0",
    "Python-2.0", "Unlicense", "Zlib",
}  # fmt: skip

# What older metadata says instead of an SPDX identifier.
SPELLINGS = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "BSD-3-Clause License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    # pypdfium2 and PDFium; the libraries in PDFium (FreeType, libjpeg-turbo, OpenJPEG, ...) are permissive as well.
    "BSD-3-Clause, Apache-2.0, dependency licenses": "BSD-3-Clause",
    "Python Software Foundation License": "PSF-2.0",
}


def licences(package: importlib.metadata.Distribution) -> list[set[str]]:
    """Every way in which the package offers itself: each a set of licences that then hold together."""
    metadata = package.metadata
    expression = metadata.get("License-Expression")
    if not expression:
        classified = [
            line.rpartition(" :: ")[2]
            for line in metadata.get_all("Classifier") or []
            if line.startswith("License :: ") and not line.endswith("OSI Approved")
        ]
        plain = (metadata.get("License") or "").partition("\n")[0].strip()
        # Several classifiers mean a choice as often as not; the plain field, where it is short, says which.
        expression = plain if plain and len(plain) < 60 else " AND ".join(classified)
    if not expression:
        # Some carry the text alone, which begins with its name.
        texts = [file for file in package.files or () if file.name.upper().startswith("LICENSE")]
        expression = " AND ".join(file.read_text().partition("\n")[0].strip() for file in texts)
    choices = re.split(r"\s+OR\s+|/", expression.replace("(", "").replace(")", ""))
    parts = [re.split(r"\s+AND\s+", choice) for choice in choices]
    return [{SPELLINGS.get(part.strip(), part.strip()) for part in choice} for choice in parts]


def run_time_packages() -> list[str]:
    found = []
    for name, pin in release.pins("run").items():
        marker = pin.partition(" ; ")[2]
        if not marker or Marker(marker).evaluate():
            found.append(name)
    return found


def test_the_lock_is_read() -> None:
    assert {"click", "pycurl", "selectolax", "uvloop"} <= set(run_time_packages())


#: Decided one by one. The public suffix list itself is MPL-2.0 wherever it comes from: weak copyleft, by file, and a
#: file that nobody changes; there is no other list (docs/decisions/0003).
#: tqdm (MPL-2.0 for its older parts) comes with the command line of fastwarc, which resiliparse needs; nothing of ours
#: imports it (docs/decisions/0013).
DECIDED = {"publicsuffixlist": {"MPL-2.0"}, "tqdm": {"MPL-2.0"}}


@pytest.mark.parametrize("package", run_time_packages())
def test_a_run_time_dependency_is_permissively_licensed(package: str) -> None:
    offered = licences(importlib.metadata.distribution(package))
    assert any(choice <= PERMISSIVE | DECIDED.get(package, set()) for choice in offered), f"{package}: {offered}"
