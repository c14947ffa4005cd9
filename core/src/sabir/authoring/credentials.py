"""Finds a provider's credentials in the places that it declares, in their order.

given (api_key=) ─▶ variables ─▶ profile ─▶ files ─▶ default        declared as Credentials
                    └──────── KeySource ──▶ values that are never shown
                    └─ KeySource.find ──▶ whether each is there, and whence
"""

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from configparser import Error as INIInvalid
from configparser import RawConfigParser
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pydantic import SecretStr

from sabir.base.errors import NotJSON, SettingsInvalid
from sabir.base.failures import CredentialsMissing
from sabir.base.values import FrozenDict, JSONValue, decode_json
from sabir.contract.provider import ApiKey, Credential, Profile

Given: TypeAlias = Mapping[str, SecretStr]
Values: TypeAlias = tuple[tuple[str, SecretStr], ...]
"""Names and values; the values are SecretStr, because tools that report failures show local variables."""
_GIVEN = "api_key="
_NOTHING = SecretStr("")
_NONE: Given = FrozenDict()


class FoundCredential(NamedTuple):
    """A credential as it was found; its repr does not show the value.

    `whence` names the variable, the file with its profile, or "default"; None if it is missing. `looked` names all
    places that were read, in order.
    """

    credential: Credential
    whence: str | None
    looked: tuple[str, ...]
    value: SecretStr

    @property
    def name(self) -> str:
        """The credential's name in a sentence."""
        return "key" if self.credential.name == "api_key" else self.credential.name


class KeySource:
    """A provider's credentials, which are never shown: given, or found in the places that the provider declares.

    They are read once, at the first send; a given function is called at each send, because it may return others.
    """

    def __init__(self, provider: str, given: ApiKey | None, credentials: Sequence[Credential] = ()) -> None:
        self._provider = provider
        self._credentials = tuple(credentials) or ((Credential(),) if given else ())
        self._ask = given if callable(given) else None
        self._given = _NONE if given is None or callable(given) else self._named(given)
        self._values: Values | None = None

    @staticmethod
    def find(credentials: Sequence[Credential], given: Given = _NONE) -> list[FoundCredential]:
        """What there is of a provider's credentials; the files that they name are read.

        What is secret comes of the first place that has any of it; what is given counts though it is empty.
        """
        looks = {each.name: list(_looks(each, given)) for each in credentials}
        secret = [look for each in credentials if each.secret for look in looks[each.name]]
        places = [place for place, whence, value in secret if value or whence == _GIVEN]
        found = []
        for each in credentials:
            at = [look for look in looks[each.name] if not (each.secret and places) or look[0] == min(places)]
            hit = next(((whence, value) for _, whence, value in at if value), None)
            looked = tuple(whence for _, whence, _ in (looks[each.name] if hit else at))
            whence, value = hit or (None if each.default is None else "default", SecretStr(each.default or ""))
            found.append(FoundCredential(each, whence, looked, value))
        return found

    @property
    def is_needed(self) -> bool:
        """Whether the provider takes a key at all."""
        return bool(self._credentials)

    def read(self) -> Values:
        """The values by the names of the credentials, without optional ones that are missing.

        Raises CredentialsMissing, which names a missing value and all places that were read, or a value that no
        header can hold.
        """
        if self._ask:
            return self._found(self._named(self._ask()))
        if self._values is None:
            self._values = self._found(self._given)
        return self._values

    def text(self) -> str:
        """The key, which is the first of the values; "" if none is needed."""
        return next((value.get_secret_value() for _, value in self.read()), "")

    def _named(self, given: str | Mapping[str, str]) -> Given:
        """The given values, by name."""
        names = [each.name for each in self._credentials]
        if isinstance(given, str):
            return {names[0]: SecretStr(given)}
        if foreign := sorted(set(given) - {"profile", *names}):
            wrong = f"api_key= of {self._provider} holds {', '.join(foreign)}; expected {', '.join(names)}"
            raise SettingsInvalid(wrong)
        return {name: SecretStr(value) for name, value in given.items()}

    def _found(self, given: Given) -> Values:
        found = KeySource.find(self._credentials, given)
        if any(each.whence is None for each in found):
            raise CredentialsMissing(f"{self._provider} has {_what_is_missing(found)}", provider=self._provider)
        for each in found:
            if each.whence not in each.credential.files and not _fits_a_header(each.value.get_secret_value()):
                wrong = f"a {each.name} that holds a space, a control or a foreign character; pass it bare"
                raise CredentialsMissing(f"{self._provider} has {wrong}", provider=self._provider)
        return tuple((each.credential.name, each.value) for each in found if each.value)


def _what_is_missing(found: Sequence[FoundCredential]) -> str:
    """In one line: the values found, the values missing, all places that were read, and the remedy."""
    had = [f"{each.name} ({each.whence})" for each in found if each.value]
    missing = [each for each in found if each.whence is None]
    looked = dict.fromkeys(whence for each in missing for whence in each.looked)
    variables = [each.credential.variables for each in missing if each.credential.variables]
    wanted = [each.credential.name for each in found if each.credential.default is None]
    give = "pass api_key=" + (f"{{{', '.join(f'{name!r}: …' for name in wanted)}}}" if len(wanted) > 1 else "")
    is_more = looked.keys() - {name for names in variables for name in names}
    steps = [f"looked at {', '.join(looked)}"] if is_more else []
    steps.append(f"set the variable {' and '.join(map(' or '.join, variables))}, or {give}" if variables else give)
    names = " and no ".join(each.name for each in missing)
    return f"{' and '.join(had) + ' but ' if had else ''}no {names}; {'; '.join(steps)}"


def _fits_a_header(value: str) -> bool:
    return value.isascii() and value.isprintable() and " " not in value


def _looks(credential: Credential, given: Given) -> Iterator[tuple[int, str, SecretStr]]:
    """Each place of a credential, in order: the number of the place, its name, and the value there or ""."""
    if credential.name in given:
        yield 0, _GIVEN, given[credential.name]
    for name in credential.variables:
        value = os.environ.get(name, "")
        yield 1, name, SecretStr(value if value.strip() else "")
    if credential.profile:
        whence, values = _section(credential.profile, given.get("profile", _NOTHING).get_secret_value())
        yield 2, whence, SecretStr(str(values.get(credential.name, "")))
    for file in credential.files:
        path = Path(file).expanduser()
        yield 3, file, SecretStr(str(path) if path.is_file() else "")


def _section(profile: Profile, named: str) -> tuple[str, Mapping[str, JSONValue]]:
    """The name of a section of a profile's file, and the section; if there is none, the name says why."""
    name = named or os.environ.get(profile.variable) or profile.section
    path = Path(profile.file).expanduser()
    try:
        text = path.read_text("utf-8")
        if path.suffix == ".toml":
            sections: JSONValue = tomllib.loads(text)
        else:
            sections = decode_json(text) if path.suffix == ".json" else _read_ini(text)
    except FileNotFoundError:
        return f"{profile.file} (no such file)", {}
    except (OSError, ValueError, INIInvalid, NotJSON) as error:  # its text may hold a line of the file
        return f"{profile.file} (unreadable: {type(error).__name__})", {}
    section = sections.get(name) if isinstance(sections, Mapping) else None
    if not isinstance(section, Mapping):
        return f"{profile.file} (no profile {name!r})", {}
    return f"{profile.file} [{name}]", section


def _read_ini(text: str) -> JSONValue:
    parser = RawConfigParser()
    parser.read_string(text)
    return {name: dict(section) for name, section in parser.items()}
