"""The report of a benchmark: tables of figures, and the machine and versions that they were measured on."""

import os
import platform
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec


def machine() -> dict[str, str]:
    """Processor, cores, memory, system, Python and the libraries that speed depends on."""
    info = {"system": platform.platform(terse=True), "python": sys.version.split()[0], "cores": str(os.cpu_count())}
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        names = [
            line.partition(":")[2].strip() for line in cpu.read_text().splitlines() if line.startswith("model name")
        ]
        info["processor"] = names[0] if names else platform.processor()
    for name in ("pycurl", "selectolax", "ada-url", "msgspec", "isal", "uvloop", "rocksdict"):
        try:
            info[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return info


class FigureTable(msgspec.Struct):
    """Rows of figures under named columns."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = []

    def add(self, *cells: Any) -> None:
        self.rows.append(tuple(str(cell) for cell in cells))

    def text(self) -> str:
        """The table in Markdown, with columns aligned so that it also reads in a terminal."""
        widths = [max(len(row[i]) for row in (self.columns, *self.rows)) for i in range(len(self.columns))]

        def line(row: tuple[str, ...]) -> str:
            return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"

        rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
        return "\n".join([self.title, "", line(self.columns), rule, *map(line, self.rows)])


class BenchReport(msgspec.Struct):
    """The tables of one benchmark."""

    name: str
    tables: list[FigureTable] = []
    machine: dict[str, str] = msgspec.field(default_factory=machine)
    date: str = msgspec.field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    command: str = ""
    """As it was typed."""

    def table(self, title: str, *columns: str) -> FigureTable:
        made = FigureTable(title, columns)
        self.tables.append(made)
        return made

    def text(self) -> str:
        """Machine, versions and all tables."""
        head = ", ".join(f"{key} {value}" for key, value in self.machine.items())
        said = f"{self.date}: {self.command}" if self.command else self.date
        return "\n\n".join([f"{self.name}: {head}", said, *(table.text() for table in self.tables)])

    def json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self))
