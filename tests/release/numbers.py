"""The version of a release, and the places that must state it.

    pyproject.toml of the workspace: version = "0.1.0"      the one source
        │
        ├──▶ version of every package
        └──▶ every requirement of one package on another: sabir>=0.1.0,<0.2

All packages are released together, so they have one version. `set_version` writes it to all places, and
`version_faults` names the places that differ.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.project import ROOT
from tests.release.packages import load_packages

_VERSION_LINE = re.compile(r'^version = "[^"]*"$', re.MULTILINE)
_RANGE = re.compile(r"(?P<name>\bsabir(?:-[a-z]+)*(?:\[[\w,-]+\])?)(?P<range>[<>=!~]=?[\d.]+(?:,[<>=!~]=?[\d.]+)*)")
_URLS = re.compile(r"^\[project\.urls\]\n(?:.+\n)*\n?", re.MULTILINE)

PLACES = ("core", "plugins/*", "plugins/cli/src/sabir_cli/*template", "tests/third_party/sabir-*")
"""Folders whose requirements on packages of the workspace follow its version."""


def workspace_version(root: Path = ROOT) -> str:
    """Return the version that the workspace's pyproject.toml states."""
    return str(tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def compatible_range(version: str) -> str:
    """Return the range that one package requires of another: `>=0.1.0,<0.2`, and from 1.0 on `>=1.2.0,<2.0`."""
    major, minor, _ = map(int, version.split("."))
    return f">={version},<{f'0.{minor + 1}' if major == 0 else f'{major + 1}.0'}"


def metadata_files(root: Path = ROOT) -> list[Path]:
    """Return the pyproject.toml files whose requirements follow the version of the workspace."""
    return sorted(path for place in PLACES for path in root.glob(f"{place}/pyproject.toml"))


def version_faults(root: Path = ROOT) -> Iterator[str]:
    """Name every place that states another version, or another range, than the workspace's version means."""
    version = workspace_version(root)
    for package in load_packages(root):
        if package.metadata["version"] != version:
            yield f"{package.name} has version {package.metadata['version']}, the workspace has {version}"
    for path in metadata_files(root):
        for match in _RANGE.finditer(path.read_text("utf-8")):
            if match["range"] != compatible_range(version):
                yield f"{path.relative_to(root).as_posix()} requires {match[0]}, not {compatible_range(version)}"


def set_version(version: str, root: Path = ROOT) -> list[Path]:
    """Write a version to the workspace, to every package and to every range; return the files that changed.

    Raises ValueError if the version is not three numbers with dots between them.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ValueError(f"{version!r} is not a version: write three numbers, such as 0.2.0")
    changed = []
    versioned = {root / "pyproject.toml", *(package.folder / "pyproject.toml" for package in load_packages(root))}
    for path in sorted(versioned | {*metadata_files(root)}):
        before = path.read_text("utf-8")
        after = _RANGE.sub(rf"\g<name>{compatible_range(version)}", before)
        if path in versioned:
            after = _VERSION_LINE.sub(f'version = "{version}"', after, count=1)
        if after != before:
            path.write_text(after, "utf-8")
            changed.append(path)
    return changed


def set_repository(url: str, root: Path = ROOT) -> list[Path]:
    """Write the repository's address to every package and make the links of package READMEs absolute.

    Each pyproject.toml gets a table [project.urls]. In a README, `../../docs/` becomes an address below the
    branch `main`, because a package index cannot follow a relative link. Return the files that changed. Raises
    ValueError if `url` does not begin with https://.
    """
    if not re.fullmatch(r"https://[^\s/]+/\S+", url):
        raise ValueError(f"{url!r} is not the address of a repository: write https://HOST/OWNER/NAME")
    url = url.rstrip("/")
    changed = []
    for package in load_packages(root):
        metadata, readme = package.folder / "pyproject.toml", package.folder / "README.md"
        for path, text in ((metadata, _with_urls(metadata, url)), (readme, _with_absolute_links(readme, url))):
            if text != path.read_text("utf-8"):
                path.write_text(text, "utf-8")
                changed.append(path)
    return changed


def _with_urls(path: Path, url: str) -> str:
    table = (
        "[project.urls]\n"
        f'Repository = "{url}"\n'
        f'Documentation = "{url}/blob/main/docs/README.md"\n'
        f'Changelog = "{url}/blob/main/CHANGELOG.md"\n'
        f'Issues = "{url}/issues"\n\n'
    )
    text = _URLS.sub("", path.read_text("utf-8"))
    return text.replace("[tool.hatch.build", f"{table}[tool.hatch.build", 1)


def _with_absolute_links(path: Path, url: str) -> str:
    up = r"\]\(\.\./" if path.parent.name == "core" else r"\]\(\.\./\.\./"
    return re.sub(up, f"]({url}/blob/main/", path.read_text("utf-8"))
