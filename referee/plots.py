"""The picture of the page: a square for each cell, in the colour of its verdict, by matplotlib in its own environment.

results.json ──▶ referee.svg
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from referee import results
from referee.contenders import CONTENDERS, MODELS

mpl.rcParams.update({"svg.hashsalt": "sabir", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 8})

COLORS = {
    "complete": "#4e9a5b", "lost and reported": "#b9dbb0", "raised an error": "#f3d98b", "lost silently": "#e08a4f",
    "refused": "#c0392b", "not claimed": "#e3e3e3",
}  # fmt: skip
SHORT = {"openai.chat": "C", "openai.responses": "R", "anthropic.messages": "A", "google.generate_content": "G"}


def figure_of(stored: dict[str, Any]) -> Figure:
    """Return the grid: a line for each history, four squares for each library."""
    titles, wires = stored["titles"], list(MODELS)
    drawn = Figure(figsize=(8.2, 0.19 * len(titles) + 1.2), layout="constrained")
    axes = drawn.subplots()
    for column, (name, label) in enumerate(CONTENDERS.items()):
        left = column * (len(wires) + 1)
        axes.text(left + len(wires) / 2, -1.7, label, ha="center", weight="bold")
        for number, wire in enumerate(wires):
            axes.text(left + number + 0.5, -0.5, SHORT[wire], ha="center", color="#666666", fontsize=7)
        for cell in (each for each in stored["cells"] if each["library"] == name):
            at = (left + wires.index(cell["wire"]), list(titles).index(cell["history"]))
            axes.add_patch(Rectangle(at, 0.92, 0.86, color=COLORS[cell["verdict"]]))
    axes.set(xlim=(0, len(CONTENDERS) * (len(wires) + 1)), ylim=(len(titles), -2.6))
    axes.set_yticks([number + 0.43 for number in range(len(titles))], list(titles.values()))
    axes.tick_params(length=0, labelbottom=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    patches = [Patch(color=color, label=verdict) for verdict, color in COLORS.items()]
    drawn.legend(handles=patches, loc="outside lower center", ncols=6, frameon=False, fontsize=7)
    return drawn


if __name__ == "__main__":
    path = Path(sys.argv[2])
    figure_of(results.load(Path(sys.argv[1]))).savefig(path, metadata={"Date": None, "Creator": None})
    if path.suffix == ".svg":
        path.write_text("\n".join(line.rstrip() for line in path.read_text("utf-8").splitlines()) + "\n", "utf-8")
