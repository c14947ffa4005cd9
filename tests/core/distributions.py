"""Distributions that are really installed: a folder on the path with modules and their metadata."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

EntryPoints = Mapping[str, Mapping[str, str]]
"""Group → name → `module:object`."""


class Install(Protocol):
    """Installs a distribution of modules, each named by a keyword, and its entry points."""

    def __call__(self, name: str, entry_points: EntryPoints, *, version: str = "1.0", **modules: str) -> None: ...


def write_distribution(
    folder: Path, name: str, entry_points: EntryPoints, version: str, modules: Mapping[str, str]
) -> None:
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    sections = (
        f"[{group}]\n" + "".join(f"{point} = {value}\n" for point, value in points.items())
        for group, points in entry_points.items()
    )
    (metadata / "entry_points.txt").write_text("\n".join(sections))
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source)


def finish_loading(go_on: threading.Event) -> int:
    """Let the modules that wait for this event go on; the number of threads that loaded one."""
    loading = [thread for thread in threading.enumerate() if thread.name == "sabir"]
    go_on.set()
    for thread in loading:
        thread.join()
    return len(loading)
