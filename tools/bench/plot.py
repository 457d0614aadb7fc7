"""Lines over the rows of a table of figures, as an SVG file that needs nothing else: `gossamer bench exchange --plots FOLDER`."""

from collections.abc import Mapping, Sequence
from html import escape

from gossamer.bench.report import FigureTable

#: Size of the drawing, and the frame that is left for numbers, labels and names, in pixels.
WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 60, 170, 40, 50

#: Colours that people who see few colours can tell apart (Okabe and Ito 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")

#: Lines across the drawing.
STEPS = 5


def series_of(table: FigureTable, columns: Sequence[str]) -> dict[str, list[float]]:
    """The figures of some columns of a table, row by row; per cents as shares.

    Raises:
        ValueError: the table has no such column, or a cell is no figure.
    """
    found = {}
    for name in columns:
        at = table.columns.index(name)
        cells = [row[at] for row in table.rows]
        found[name] = [float(cell[:-1]) / 100 if cell.endswith("%") else float(cell) for cell in cells]
    return found


def lines_svg(title: str, across: str, labels: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """A drawing with one line for each series.

    Args:
        across: what the labels count.
        labels: one for each figure of a series; they stand at equal distances.
    """
    top = max(max(figures) for figures in series.values()) or 1.0
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    xs = [LEFT + wide * at / max(1, len(labels) - 1) for at in range(len(labels))]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
    ]
    for step in range(STEPS + 1):
        y = TOP + high * (1 - step / STEPS)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{LEFT + wide}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{top * step / STEPS:.2f}</text>')
    for x, label in zip(xs, labels, strict=True):
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{escape(label)}</text>')
    parts.append(f'<text x="{LEFT + wide / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(across)}</text>')
    for number, (name, figures) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(
            f"{x:.1f},{TOP + high * (1 - figure / top):.1f}" for x, figure in zip(xs, figures, strict=True)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = TOP + 16 * (number + 1)
        parts.append(f'<text x="{LEFT + wide + 10}" y="{y}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
