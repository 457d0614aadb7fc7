"""The parts of a release: change fragments and their log, the locks, wheel and sdist.

Fragments are the files changes/SLUG.KIND.md: `new-change KIND SLUG [TEXT...]` begins one; `changelog` gathers all under the version
of this checkout.

`lock` keeps versions that fit, `lock --upgrade [PACKAGE...]` raises them. The locks hold for Linux and macOS and every Python that
pyproject.toml allows. Their head carries a digest of what they were made from, so that `check` can tell without a network that they
are stale.

`package [--python P]... [--out FOLDER] [--wheels]` builds wheel and sdist and tries both in empty environments. A release is what
this chore has tried: everything runs in a folder and with a home of its own, without this checkout, by the commands that the README
gives a new user. Tests of the package itself are `./gossamer dev test`.
"""

import argparse
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools import CHANGES, REQUIREMENTS, ROOT, pyproject

# Kind -> heading in CHANGELOG.md, in the order in which a reader wants them. A summary stands under that of the version, as prose.
SUMMARY = "summary"
KINDS = {
    SUMMARY: "",
    "security": "Security",
    "removed": "Removed",
    "changed": "Changed",
    "added": "Added",
    "fixed": "Fixed",
    "faster": "Faster",
}
NAME = re.compile(r"(?P<slug>[a-z0-9]+(?:-[a-z0-9]+)*)\.(?P<kind>[a-z]+)\.md")


@dataclass(frozen=True)
class Fragment:
    path: Path
    slug: str
    kind: str
    text: str


def paths(folder: Path = CHANGES) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name != "README.md" and not path.name.startswith("."))


def read(path: Path) -> Fragment:
    """The fragment at `path`; ValueError says in one line what is wrong with it."""
    match = NAME.fullmatch(path.name)
    if match is None or match["kind"] not in KINDS:
        raise ValueError(f"changes/{path.name}: the name must be SLUG.KIND.md, KIND one of {', '.join(KINDS)}")
    text = path.read_text(encoding="utf-8").strip()
    if not text:
        raise ValueError(f"changes/{path.name}: is empty; say in a sentence what changed for the user")
    if text.startswith(("#", "-", "*")) or not text.endswith((".", "!", "`", ")")):
        raise ValueError(f"changes/{path.name}: must be sentences, without heading or bullet, ending in a full stop")
    return Fragment(path, match["slug"], match["kind"], text)


def problems_of_fragments(folder: Path = CHANGES) -> list[str]:
    """For `check`: one line for each fragment that is not well-formed."""
    found = []
    for path in paths(folder):
        try:
            read(path)
        except ValueError as error:
            found.append(str(error))
    return found


def new_change(arguments: list[str]) -> int:
    if len(arguments) < 2 or arguments[0] not in KINDS:
        kinds = "|".join(KINDS)
        print(f"usage: ./gossamer dev new-change {kinds} SLUG [TEXT...]", file=sys.stderr)
        return 2
    kind, slug, *words = arguments
    path = CHANGES / f"{slug}.{kind}.md"
    if NAME.fullmatch(path.name) is None:
        print(f"gossamer dev new-change: {slug!r} must be lower-case words joined by hyphens.", file=sys.stderr)
        return 2
    if path.exists():
        print(f"gossamer dev new-change: {path.relative_to(ROOT)} exists already.", file=sys.stderr)
        return 2
    path.write_text(" ".join(words) + "\n", encoding="utf-8")
    print(path.relative_to(ROOT))
    return 0


CHANGELOG = ROOT / "CHANGELOG.md"
TITLE = "# Changes\n\nMade from changes/ by `./gossamer dev changelog`, newest first.\n"


def version() -> str:
    text = (ROOT / "src" / "gossamer" / "_version.py").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "([^"]+)"', text)
    if found is None:
        raise SystemExit("src/gossamer/_version.py does not state __version__")
    return found[1]


def bullet(fragment: Fragment) -> str:
    first, *rest = fragment.text.split("\n\n")
    return "\n\n".join([f"- {first}".replace("\n", "\n  "), *(textwrap.indent(paragraph, "  ") for paragraph in rest)])


def section(fragments: list[Fragment], heading: str) -> str:
    """The section of one version: summaries as they are, then its other fragments under the headings of their kinds."""
    parts = [f"## {heading}", *(fragment.text for fragment in fragments if fragment.kind == SUMMARY)]
    for kind, title in KINDS.items():
        if kind == SUMMARY:
            continue
        of_kind = [bullet(fragment) for fragment in fragments if fragment.kind == kind]
        if of_kind:
            parts += [f"### {title}", "\n".join(of_kind)]
    return "\n\n".join(parts) + "\n"


def gather(arguments: list[str]) -> int:
    if arguments not in ([], ["--draft"]):
        print("usage: ./gossamer dev changelog [--draft]", file=sys.stderr)
        return 2
    found = problems_of_fragments()
    if found:
        print("\n".join(found), file=sys.stderr)
        return 1
    fragments = [read(path) for path in paths()]
    today = datetime.datetime.now(datetime.UTC).date()
    text = section(fragments, f"{version()} ({today.isoformat()})")
    if arguments or not fragments:
        print(text if fragments else "changes/ holds no fragment.")
        return 0
    before = CHANGELOG.read_text(encoding="utf-8") if CHANGELOG.exists() else TITLE
    if f"\n## {version()} " in before:
        print(f"CHANGELOG.md has {version()} already; raise src/gossamer/_version.py first.", file=sys.stderr)
        return 1
    CHANGELOG.write_text(before.replace(TITLE, f"{TITLE}\n{text}", 1), encoding="utf-8")
    for fragment in fragments:
        fragment.path.unlink()
    print(f"CHANGELOG.md: {version()}, {len(fragments)} changes")
    return 0


#: Extras that the checkout's own environment has: commands that need them work in it.
EXTRAS = ("words", "mcp")

HEAD = "# Made by ./gossamer dev lock from pyproject.toml; not edited by hand.\n# inputs: {digest}\n"


def digest(kind: str) -> str:
    """The inputs of the lock `kind` ("run" or "dev"), as a hash."""
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
    """The faults of the locks as they lie there; empty when they are fresh."""
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
            # A pin of the tools that holds everywhere covers one that holds in some places only.
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


def relock(arguments: list[str]) -> int:
    flag, packages = arguments[:1], arguments[1:]
    if flag not in ([], ["--upgrade"]):
        print(f"gossamer dev lock: {flag[0]} is not known; only --upgrade [PACKAGE...] is.", file=sys.stderr)
        return 2
    try:
        options = [f"--upgrade-package={package}" for package in packages] or flag
        compile_lock("run", options)
        # The lock of the program is decided first; the tools take what is left.
        compile_lock("dev", ["--group", "dev", "--constraint", "requirements/run.lock", *options])
    except subprocess.CalledProcessError as error:
        print(f"gossamer dev lock: the resolver failed (exit {error.returncode}); its reason stands above.")
        return 1
    for line in problems():
        print(line)
    return 1 if problems() else 0


#: Every series that pyproject.toml allows and that has been released.
SERIES = ("3.11", "3.12", "3.13", "3.14")

#: The machines that people have; the names are uv's.
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin", "x86_64-apple-darwin")

#: Variables that an environment may keep of ours: for the way to a package index, and none that leads into this checkout.
KEPT = ("PIP_", "UV_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_", "REQUESTS_")

SPIDER = """\
import gossamer

spider = gossamer.Spider({url!r}, resolve={resolve!r}, allow_network="127.0.0.0/8", delay=0)


@spider.page()
def listing(page):
    yield {{"title": page.title}}
    yield page.follow_all("a")
"""


def uv(*arguments: str) -> list[str]:
    from uv import find_uv_bin

    return [find_uv_bin(), *arguments]


def build(folder: Path) -> tuple[Path, Path]:
    """Wheel and sdist, the wheel from the sdist, as an index would have them."""
    subprocess.run(uv("build", "--quiet", "--out-dir", str(folder), str(ROOT)), check=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def pythons(wanted: list[str]) -> dict[str, str]:
    """Each Python to try, by its version: those that are wanted, or one of each series that this machine has."""
    found = {}
    for name in wanted or SERIES:
        command = uv("python", "find", "--no-python-downloads", name)
        path = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        if path:
            show = [path, "-c", "import platform; print(platform.python_version())"]
            found[subprocess.run(show, capture_output=True, text=True, check=True).stdout.strip()] = path
        else:
            print(f"Python {name}: not on this machine", file=sys.stderr)
    return found


class Trial:
    """A folder with nothing in it, and what a new user types there."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if name.upper().startswith(KEPT)}
        self.environment = {"PATH": os.defpath, "HOME": str(home), "LANG": "C.UTF-8", **kept}

    def run(self, *command: str) -> str:
        """The output of the command.

        Raises:
            CalledProcessError: it failed; its own words stand above.
        """
        began = time.monotonic()
        done = subprocess.run(
            command, cwd=self.home, env=self.environment, stdout=subprocess.PIPE, text=True, timeout=600, check=False
        )
        print(f"    {time.monotonic() - began:5.1f} s  {' '.join(Path(word).name for word in command)[:90]}")
        done.check_returncode()
        return done.stdout

    def install(self, python: str, what: str) -> str:
        """An environment with the package in it; returns its folder of commands."""
        self.run(*uv("venv", "--quiet", "--python", python, "venv"))
        self.run(*uv("pip", "install", "--quiet", "--python", "venv/bin/python", what))
        return str(self.home / "venv" / "bin")


@contextmanager
def trial() -> Iterator[Trial]:
    with tempfile.TemporaryDirectory(prefix="gossamer-package-") as home:
        yield Trial(Path(home))


def try_all(python: str, package: str) -> None:
    """A crawl, a question, a spider and the demo, from an installed package.

    Raises:
        AssertionError: a command did not do what it says.
    """
    from gossamer.testing.fakeweb import FakeWeb

    pages = {"/": '<title>One</title><a href="/two">two</a>', "/two": "<title>Two</title>"}
    with trial() as here, FakeWeb(pages) as web:
        commands = here.install(python, package)
        gossamer = f"{commands}/gossamer"
        assert here.run(gossamer, "--version").strip(), "no version"
        line = [web.url("/"), "--resolve", web.resolve, "--allow-network", "127.0.0.0/8", "--delay", "0", "--quiet"]
        here.run(gossamer, "crawl", *line, "-o", "mine")
        answer = here.run(gossamer, "query", "mine", "SELECT count(*) AS n FROM pages", "-f", "jsonl")
        assert json.loads(answer) == {"n": 2}, answer
        (here.home / "titles.py").write_text(SPIDER.format(url=web.url("/"), resolve=web.resolve), encoding="utf-8")
        here.run(gossamer, "run", "titles.py", "-o", "spun", "--items", "titles.csv", "--quiet")
        titles = (here.home / "titles.csv").read_text(encoding="utf-8")
        assert {"One", "Two"} <= set(titles.replace("\n", ",").split(",")), titles
        found = json.loads(here.run(gossamer, "demo", "--seconds", "2", "-o", "demo", "--json"))
        assert found["pages"] > 0, found


def try_runners(wheel: Path) -> None:
    """`uvx` and `pipx` run the command without a place for it."""
    with trial() as here:
        shown = here.run(*uv("tool", "run", "--from", str(wheel), "gossamer", "--version"))
        again = here.run(*uv("tool", "run", "pipx", "run", "--spec", str(wheel), "gossamer", "--version"))
        assert shown == again, (shown, again)


def missing_wheels() -> dict[tuple[str, str], str]:
    """For each series and platform that cannot be served by wheels alone: the resolver's reason."""
    reasons = {}
    for series in SERIES:
        for platform in PLATFORMS:
            command = uv("pip", "compile", "--quiet", "--all-extras", "--only-binary", ":all:", "pyproject.toml")
            command += ["--python-version", series, "--python-platform", platform]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                reasons[series, platform] = " ".join(done.stderr.split())
    return reasons


def show_wheels() -> int:
    reasons = missing_wheels()
    for series in SERIES:
        for platform in PLATFORMS:
            print(f"Python {series} on {platform}: {reasons.get((series, platform), 'every dependency has a wheel')}")
    return 1 if reasons else 0


def package(arguments: list[str]) -> int:
    """Build wheel and sdist, and try both in empty environments."""
    parser = argparse.ArgumentParser(prog="gossamer dev package", description=package.__doc__)
    parser.add_argument("--python", action="append", default=[], help="try this version, or the Python at this path")
    parser.add_argument("--out", type=Path, help="keep wheel and sdist in this folder, which must be empty or new")
    parser.add_argument("--wheels", action="store_true", help="only say which dependencies lack a wheel, and where")
    options = parser.parse_args(arguments)
    if options.wheels:
        return show_wheels()
    if options.out and options.out.exists() and any(options.out.iterdir()):
        print(f"gossamer dev package: {options.out} is not empty", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="gossamer-dist-") as scratch:
        wheel, sdist = build(options.out or Path(scratch))
        found = pythons(options.python)
        for version, python in found.items():
            print(f"Python {version}, {wheel.name}")
            try_all(python, f"gossamer[dashboard] @ {wheel.resolve().as_uri()}")
        if found:
            version, python = next(iter(found.items()))
            print(f"Python {version}, {sdist.name}")
            try_all(python, str(sdist.resolve()))
        print("uvx and pipx")
        try_runners(wheel.resolve())
    return 0 if found else 1
