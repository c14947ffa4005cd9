"""The paths of the settings file and of the folder of conversations.

This module does not import pydantic, so that `sabir chats` lists conversations at once.

$SABIR_HOME ──overrides──▶ `home` in config.toml ──overrides──▶ the platform's folder for data
"""

import os
import tomllib
from pathlib import Path

import platformdirs

from sabir_cli.output import UsageError

APP = "sabir"


def settings_path() -> Path:
    """Return the path of the user's settings file, which may not exist."""
    return platformdirs.user_config_path(APP, appauthor=False) / "config.toml"


def default_home() -> Path:
    """Return the folder for conversations that is used if no folder is set: the platform's folder for users' data."""
    return platformdirs.user_data_path(APP, appauthor=False)


def home_folder() -> Path:
    """Return the folder of conversations, which may not exist. Raises UsageError for an invalid setting or an
    unreadable file.
    """
    if text := os.environ.get(variable_of("home")):
        return _as_home(text, variable_of("home"))
    stored = read_settings(settings_path()).get("home")
    return default_home() if stored is None else _as_home(stored, repr(str(settings_path())))


def _as_home(folder: object, source: str) -> Path:
    try:
        return as_folder(Path(str(folder)))
    except ValueError as error:
        raise UsageError(f"{source}: home: {error}") from None


def variable_of(name: str) -> str:
    """Return the name of a setting's environment variable, which overrides the file."""
    return f"SABIR_{name.upper()}"


def as_folder(path: Path) -> Path:
    """Return a path with `~` expanded. Raises ValueError for a relative path, and for `~user` with an unknown user."""
    try:
        expanded = path.expanduser()
    except RuntimeError as error:  # ~user with an unknown user
        raise ValueError(f"{str(path)!r}: {error}") from None
    if not expanded.is_absolute():
        raise ValueError(f"{str(path)!r} is a relative path; write an absolute path, or begin with ~")
    return expanded


def read_settings(path: Path) -> dict[str, object]:
    """Return the content of a settings file without checking it; {} if there is no file.

    Raises UsageError if the file cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}; make it readable, or remove it") from None
    except ValueError as error:  # not UTF-8, or not TOML
        raise UsageError(f"{str(path)!r} is not TOML: {error}; correct it, or remove it") from None
