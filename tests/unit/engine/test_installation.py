"""The command that installs an extra fits the installation that runs, and never names `gossamer[...]`."""

from pathlib import Path

import pytest

from gossamer.engine.errors import UnknownName, command_for, install_command


def made(prefix: Path, name: str, text: str = "") -> Path:
    prefix.mkdir(parents=True, exist_ok=True)
    (prefix / name).write_text(text)
    return prefix


def test_pip_gets_the_command_of_its_own_python(tmp_path: Path) -> None:
    prefix = made(tmp_path / "venv", "pyvenv.cfg", "home = /usr/bin\nversion = 3.12.1\n")
    told = command_for(["psycopg[binary]>=3.2"], prefix, "/opt/my venv/bin/python")
    assert told == "'/opt/my venv/bin/python' -m pip install 'psycopg[binary]>=3.2'"


def test_pipx_adds_the_packages_to_its_environment(tmp_path: Path) -> None:
    prefix = made(tmp_path / "pipx" / "venvs" / "gossamer", "pipx_metadata.json")
    assert command_for(["a", "b>=1"], prefix, "python") == "pipx inject gossamer a 'b>=1'"


@pytest.mark.parametrize(
    ("name", "text"), [("uv-receipt.toml", ""), ("pyvenv.cfg", "home = /usr/bin\nuv = 0.9.1\n")], ids=["tool", "venv"]
)
def test_an_environment_of_uv_has_no_pip_and_needs_none(tmp_path: Path, name: str, text: str) -> None:
    assert command_for(["a"], made(tmp_path, name, text), "/x/python") == "uv pip install --python /x/python a"


def test_an_environment_for_one_run_is_not_changed(tmp_path: Path) -> None:
    prefix = made(tmp_path / "uv" / "archive-v0" / "x", "pyvenv.cfg", "uv = 0.9.1\n")
    assert command_for(["a", "b"], prefix, "python") == "uvx --with a --with b ..."


def test_no_hint_names_a_package_called_gossamer() -> None:
    told = install_command("mysql")
    assert "sqlalchemy" in told
    assert "pymysql" in told
    assert "gossamer[" not in told


def test_an_extra_that_is_none_is_refused() -> None:
    with pytest.raises(UnknownName, match="no extra 'jam'"):
        install_command("jam")
