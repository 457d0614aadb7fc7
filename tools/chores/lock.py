"""Lock the dependencies with hashes: `lock` keeps versions that fit, `lock --upgrade [PACKAGE...]` raises them.

The locks hold for Linux and macOS and every Python that pyproject.toml allows. Their head carries a digest of what
they were made from, so that `check` can tell without a network that they are stale.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys

from tools.checkout import REQUIREMENTS, ROOT, pyproject

#: Extras that the checkout's own environment has: commands that need them work in it.
EXTRAS = ("words", "mcp")

HEAD = "# Made by ./gossamer dev lock from pyproject.toml; not edited by hand.\n# inputs: {digest}\n"


def digest(kind: str) -> str:
    """What the lock `kind` ("run" or "dev") depends on, as a hash."""
    settings = pyproject()
    project = settings["project"]
    extras = [need for name in EXTRAS for need in project.get("optional-dependencies", {}).get(name, [])]
    inputs = [project["requires-python"], sorted([*project["dependencies"], *extras])]
    if kind == "dev":
        inputs.append(sorted(settings["dependency-groups"]["dev"]))
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()


def pins(kind: str) -> dict[str, str]:
    """Name -> version and marker, as locked."""
    text = (REQUIREMENTS / f"{kind}.lock").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9.\-]+)==(\S+(?: ; [^\\\n]+?)?) *\\?$", text, flags=re.MULTILINE))


def problems() -> list[str]:
    """What is wrong with the locks as they lie there; empty when they are fresh."""
    found = []
    for kind in ("run", "dev"):
        path = REQUIREMENTS / f"{kind}.lock"
        if not path.exists():
            found.append(f"requirements/{kind}.lock is missing; run ./gossamer dev lock")
        elif f"# inputs: {digest(kind)}\n" not in path.read_text(encoding="utf-8"):
            found.append(f"requirements/{kind}.lock is older than pyproject.toml; run ./gossamer dev lock")
    if not found:
        development = pins("dev")
        found += [
            f"requirements/dev.lock does not hold {name}=={version} of run.lock; run ./gossamer dev lock"
            for name, version in pins("run").items()
            # What the tools need everywhere holds what runs in some places only.
            if development.get(name) not in (version, version.partition(" ; ")[0])
        ]
    return found


def compile_lock(kind: str, options: list[str]) -> None:
    from uv import find_uv_bin

    path = REQUIREMENTS / f"{kind}.lock"
    oldest = re.sub(r"[^0-9.]", "", pyproject()["project"]["requires-python"])
    line = [
        find_uv_bin(), "pip", "compile", "pyproject.toml", "--quiet", "--universal", "--python-version", oldest,
        "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate",
        "--output-file", str(path), *(f"--extra={name}" for name in EXTRAS), *options,
    ]  # fmt: skip
    subprocess.run(line, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    path.write_text(HEAD.format(digest=digest(kind)) + path.read_text(encoding="utf-8"), encoding="utf-8")


def upgrade_options(arguments: list[str]) -> list[str]:
    flag, *packages = arguments
    if flag != "--upgrade":
        raise ValueError(flag)
    return [f"--upgrade-package={package}" for package in packages] or ["--upgrade"]


def main(arguments: list[str]) -> int:
    try:
        options = upgrade_options(arguments) if arguments else []
    except ValueError as error:
        print(f"gossamer dev lock: {error} is not known; only --upgrade [PACKAGE...] is.", file=sys.stderr)
        return 2
    try:
        compile_lock("run", options)
        # What runs is decided first; the tools take what is left.
        compile_lock("dev", ["--group", "dev", "--constraint", "requirements/run.lock", *options])
    except subprocess.CalledProcessError as error:
        print(f"gossamer dev lock: the resolver failed (exit {error.returncode}); its reason stands above.")
        return 1
    for line in problems():
        print(line)
    return 1 if problems() else 0
