"""The plots of the page: cost against size, cost of a turn, and bars; SVG, made by matplotlib in its own environment.

    results.json ──▶ performance/<row>.svg

sabir is drawn thick, the limits dashed. Axes of curves are logarithmic: a straight line of slope one is a constant cost
a message. Bars begin at zero.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from benchmarks import results
from benchmarks.contenders import BARE, LABELS, OWN
from benchmarks.goals import Record, significant
from benchmarks.interleave import place_of
from benchmarks.rows import ROWS
from benchmarks.rows.row import Row
from benchmarks.tables import places_of

REQUIREMENTS = ("matplotlib>=3.10",)

mpl.rcParams.update({
    "svg.hashsalt": "sabir", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6, "axes.axisbelow": True,
})  # fmt: skip

PALETTE = (
    "#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#9c755f", "#76b7b2", "#edc948", "#ff9da7", "#8c8c8c",
)  # fmt: skip
SABIR, LIMIT = "#d1001f", "#222222"
LINES = {"raw": "--", "limit": "--", "kept": ":", "floor": "-.", **dict.fromkeys(BARE, "--")}


def look_of(contender: str) -> dict[str, Any]:
    """How a contender is drawn, the same on every plot."""
    if contender in OWN:
        return {"color": SABIR, "linewidth": 2.4, "zorder": 5}
    if contender in LINES:
        return {"color": LIMIT, "linewidth": 1.3, "linestyle": LINES[contender], "zorder": 4}
    others = [name for name in LABELS if name not in OWN and name not in LINES]
    return {"color": PALETTE[others.index(contender) % len(PALETTE)], "linewidth": 1.3}


def figure_of(row: Row, records: Sequence[Record]) -> Figure:
    wires = places_of(records)
    columns = 2 if len(wires) > 1 else 1
    lines = -(-len(wires) // columns)
    drawn = Figure(figsize=(4.6 * columns, _height(row, records) * lines + 0.7), layout="constrained")
    panels = drawn.subplots(lines, columns, squeeze=False).ravel()
    for wire, panel in zip(wires, panels, strict=False):
        panel.set_title(wire, fontsize=9, loc="left")
        _PANELS[row.curve](row, [record for record in records if place_of(record) == wire], panel)
    for panel in panels[len(wires) :]:
        panel.set_visible(False)
    if row.curve != "bars":
        pairs = [zip(*panel.get_legend_handles_labels(), strict=True) for panel in panels]
        named = {name: handle for panel in pairs for handle, name in panel}
        drawn.legend(named.values(), named.keys(), loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    drawn.suptitle(row.title, fontsize=10, x=0.01, ha="left")
    return drawn


def _height(row: Row, records: Sequence[Record]) -> float:
    """Inches of a panel: bars take as much as there are."""
    if row.curve != "bars":
        return 2.9
    most = max(sum(place_of(record) == wire for record in records) for wire in places_of(records))
    return 0.8 + 0.2 * most


def _by_size(row: Row, records: Sequence[Record], panel: Any) -> None:
    for contender in LABELS:
        own = sorted((each["size"], each["cpu"] / 1e6) for each in records if each["contender"] == contender)
        if own:
            panel.plot(*zip(*own, strict=True), marker="o", markersize=3, label=LABELS[contender], **look_of(contender))
    panel.set(xscale="log", yscale="log", xlabel="messages", ylabel="ms CPU")
    for axis in (panel.xaxis, panel.yaxis):
        _in_plain_numbers(axis)


def _by_turn(row: Row, records: Sequence[Record], panel: Any) -> None:
    for contender in LABELS:
        own = [each for each in records if each["contender"] == contender and "turns" in each]
        if own:
            longest = max(own, key=lambda each: each["size"])
            turns = [(int(turn), cost / 1e6) for turn, cost in longest["turns"].items()]
            panel.plot(*zip(*turns, strict=True), label=LABELS[contender], **look_of(contender))
    panel.set(yscale="log", xlabel="turn", ylabel="ms CPU of that turn")
    _in_plain_numbers(panel.yaxis)


def _in_plain_numbers(axis: Any) -> None:
    """10 and 100 rather than powers, at the powers of ten alone."""
    axis.set_major_formatter(lambda figure, _: f"{figure:,g}")
    axis.set_minor_locator(NullLocator())


def _bars(row: Row, records: Sequence[Record], panel: Any) -> None:
    bars = [
        (_name(row, record), row.figure(record), look_of(contender)["color"])
        for contender in LABELS
        for record in records
        if record["contender"] == contender
    ]
    names, figures, colors = zip(*reversed(bars), strict=True)
    drawn = panel.barh(range(len(bars)), figures, color=colors, height=0.7)
    panel.bar_label(drawn, [significant(figure) for figure in figures], padding=3, fontsize=8)
    panel.set_yticks(range(len(bars)), names)
    panel.set(xlabel=row.unit, xlim=(0, max(figures) * 1.15))
    panel.grid(visible=False, axis="y")


def _name(row: Row, record: Record) -> str:
    name = LABELS[record["contender"]]
    return f"{name}, c={record['concurrency']}" if row.concurrencies else name


_PANELS: dict[str, Callable[[Row, Sequence[Record], Any], None]] = {"sizes": _by_size, "turns": _by_turn, "bars": _bars}


def draw(stored: dict[str, Any], folder: Path) -> None:
    for name, found in stored["rows"].items():
        row = ROWS[name]
        if row.curve and found["records"]:
            path = folder / f"{name}.svg"
            figure_of(row, found["records"]).savefig(path, metadata={"Date": None, "Creator": None})
            path.write_text("\n".join(line.rstrip() for line in path.read_text("utf-8").splitlines()) + "\n", "utf-8")


if __name__ == "__main__":
    draw(results.load(Path(sys.argv[1])), Path(sys.argv[2]))
