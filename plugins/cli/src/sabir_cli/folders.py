"""Find the settings file and the folder of conversations without importing the library, so that lists appear at once.

$SABIR_HOME ──before──▶ `home` in config.toml ──before──▶ the platform's folder for data
"""

import os
import tomllib
from pathlib import Path

import platformdirs

from sabir_cli.output import UsageError

APP = "sabir"


def file_path() -> Path:
    """Return the path of the user's settings file, which may not exist."""
    return platformdirs.user_config_path(APP, appauthor=False) / "config.toml"


def default_home() -> Path:
    """Return the platform's folder for conversations, which is used if no folder is set."""
    return platformdirs.user_data_path(APP, appauthor=False)


def home_folder() -> Path:
    """Return the folder of conversations. Raises UsageError for a setting that is not the path of a folder."""
    if text := os.environ.get(variable_of("home")):
        return _checked(text, variable_of("home"))
    stored = read(file_path()).get("home")
    return default_home() if stored is None else _checked(stored, repr(str(file_path())))


def _checked(folder: object, source: str) -> Path:
    try:
        return as_folder(Path(str(folder)))
    except ValueError as error:
        raise UsageError(f"{source}: home: {error}") from None


def variable_of(name: str) -> str:
    """Return the environment variable of a setting; it is used before the file."""
    return f"SABIR_{name.upper()}"


def as_folder(path: Path) -> Path:
    """Return an absolute path, `~` expanded. Raises ValueError for a relative one, and for an unknown user."""
    try:
        expanded = path.expanduser()
    except RuntimeError as error:  # ~somebody, who is not there
        raise ValueError(f"{str(path)!r}: {error}") from None
    if not expanded.is_absolute():
        raise ValueError(f"{str(path)!r} is a relative path; write an absolute path, or begin with ~")
    return expanded


def read(path: Path) -> dict[str, object]:
    """Return the content of a settings file, unchecked; {} if there is no file.

    Raises UsageError if it cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}; make it readable, or remove it") from None
    except ValueError as error:  # not UTF-8, or not TOML
        raise UsageError(f"{str(path)!r} is not TOML: {error}; correct it, or remove it") from None
