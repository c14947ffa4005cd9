"""Find the credentials of a provider.

api_key= ─▶ variables ─▶ profile ─▶ files ─▶ default        the places, declared as Credentials
            └──────── KeySource ──▶ values that are never shown
            └─ KeySource.find ──▶ whether each value was found, and where

    alternative "a bearer key"     api_key             complete: its values are used
    alternative "keys that sign"   key_id, secret      not complete: no secret
    every alternative              region              part of the URL
"""

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from configparser import Error as INIInvalid
from configparser import RawConfigParser
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pydantic import SecretStr

from sabir.base.errors import NotJSON, SettingsInvalid
from sabir.base.failures import CredentialsMissing
from sabir.base.values import FrozenDict, JSONValue, decode_json
from sabir.contract.provider import ApiKey, Credential, Profile

PassedValues: TypeAlias = Mapping[str, SecretStr]
Values: TypeAlias = tuple[tuple[str, SecretStr], ...]
"""Pairs of a credential's name and value. Values are SecretStr, because tools that report failures show variables."""
_ARGUMENT = "api_key="
_NOTHING = SecretStr("")
_NONE: PassedValues = FrozenDict()


_Places: TypeAlias = Mapping[str, Sequence[tuple[int, str, SecretStr]]]
"""Credential's name → its places, in order: the rank of the kind of place, the place, and the value there."""


class FoundCredential(NamedTuple):
    """The result of looking for one credential. Returned by `KeySource.find`. `repr` does not show the value.

    `credential` is the Credential. `source` is the place where the value was found: "api_key=", a variable, a file
    (with its section for a profile), or "default"; None if a required value is missing. `searched` are the places that
    were read, in order. `value` is the value, also a default; "" if the value is missing or optional and not set.
    `is_used` is False if requests use another alternative. If no alternative is complete, it is True for all of them,
    or only for the alternatives with a value that the user passed.
    """

    credential: Credential
    source: str | None
    searched: tuple[str, ...]
    value: SecretStr
    is_used: bool = True

    @property
    def name(self) -> str:
        """The credential's name for use in a sentence: "key" for "api_key", otherwise the name itself."""
        return "key" if self.credential.name == "api_key" else self.credential.name


class KeySource:
    """Finds the values of a provider's credentials and never shows them. Created by SDKProvider for each connection and
    passed to `connect_own_clients`.

    `provider` is the provider's name for errors, `api_key` the user's `api_key=` or None, and `credentials` the
    provider's declared credentials. A string is the value of the first credential, or with alternatives the value of
    the credential named "api_key", if there is one. Raises SettingsInvalid for a mapping with names that are not
    credentials, or with values of several alternatives.
    """

    def __init__(self, provider: str, api_key: ApiKey | None, credentials: Sequence[Credential] = ()) -> None:
        self._provider = provider
        self._credentials = tuple(credentials) or ((Credential(),) if api_key is not None else ())
        self._ask = api_key if callable(api_key) else None
        self._passed = _NONE if api_key is None or callable(api_key) else self._name_values(api_key)
        self._values: Values | None = None

    @staticmethod
    def find(credentials: Sequence[Credential], passed: PassedValues = _NONE) -> list[FoundCredential]:
        """Look up every credential in environment variables and files, and return the results in order. A missing value
        does not raise.

        `passed` maps names to values passed by the user. All secret values of an alternative come from the first place
        (argument, variables, profile, files) that has one of them. An empty argument counts as such a place, so
        variables and files are not used for them.

        >>> from sabir.authoring import Credential, KeySource
        >>> [each.source for each in KeySource.find([Credential(default="none")])]
        ['default']
        """
        places = {each.name: list(_look_in_places(each, passed)) for each in credentials}
        results: dict[str, dict[str, FoundCredential]] = {}
        order: dict[str, tuple[bool, int]] = {}
        """Alternative → whether a value is missing, and the rank of the first place that has one of its values."""
        for name in _alternatives(credentials):
            results[name] = _find_together([each for each in credentials if each.alternative in ("", name)], places)
            own = [each for each in results[name].values() if each.credential.alternative == name]
            own_places = (place for each in own for place in places[each.credential.name])
            ranks = (rank for rank, source, text in own_places if text or source == _ARGUMENT)
            order[name] = any(each.source is None for each in own), min(ranks, default=4)
        candidates = [name for name, (_, rank) in order.items() if rank == 0] or [*order]  # rank 0: passed by the user
        best = min(candidates, key=order.__getitem__)
        used = candidates if order[best][0] else [best]
        return [
            results[each.alternative or used[0]][each.name]._replace(is_used=each.alternative in ("", *used))
            for each in credentials
        ]

    @property
    def is_needed(self) -> bool:
        """Whether requests can have a key: the provider declares credentials, or the user passed `api_key=`."""
        return bool(self._credentials)

    @property
    def is_sent(self) -> bool:
        """Whether requests have a key: `api_key=` is a function, or `read` returns at least one value. Raises
        CredentialsMissing like `read`.
        """
        return self._ask is not None or bool(self.read())

    def read(self) -> Values:
        """Return the values that requests use, as pairs of a credential's name and a SecretStr, in the order of the
        credentials, defaults included. Optional values that are not set are left out, and so are those of other
        alternatives.

        Reads variables and files at the first call and returns the same values at later calls. If `api_key` is a
        function, each call calls it, and reads variables and files again.

        Raises CredentialsMissing if a required value is missing, also if a function returned an empty one; the message
        names the alternatives, if there are any, and says where to set the value. Also raises CredentialsMissing if a
        value cannot be part of an HTTP header, because it has a space, a control character or a non-ASCII character;
        only paths of `Credential.files` may have them. Raises SettingsInvalid if a function returned a mapping with
        names that are not credentials, or with a value that is part of the URL.
        """
        if self._ask:
            passed = self._name_values(self._ask())
            if url_names := [each.name for each in self._credentials if each.in_url and each.name in passed]:
                wrong = f"returned {', '.join(url_names)}, which is part of the URL; pass a mapping, or set a variable"
                raise SettingsInvalid(f"api_key= of {self._provider} {wrong}")
            return self._look_up(passed)
        if self._values is None:
            self._values = self._look_up(self._passed)
        return self._values

    def text(self) -> str:
        """Return the first value of `read` as plain text, usually the API key; "" if there is none. Raises
        CredentialsMissing like `read`.
        """
        return next((value.get_secret_value() for _, value in self.read()), "")

    def _name_values(self, api_key: str | Mapping[str, str]) -> PassedValues:
        """Return the values of `api_key=` by credential name. Raises SettingsInvalid for unknown names, and for values
        of several alternatives.
        """
        names, owner = [each.name for each in self._credentials], f"api_key= of {self._provider}"
        if isinstance(api_key, str):
            return {_main_name(self._credentials): SecretStr(api_key)}
        if foreign := sorted(set(api_key) - {"profile", *names}):
            raise SettingsInvalid(f"{owner} has the names {', '.join(foreign)}; expected {', '.join(names)}")
        if len(names := _alternatives(each for each in self._credentials if each.name in api_key)) > 1:
            raise SettingsInvalid(f"{owner} has values for {' and for '.join(names)}; pass only one")
        return {name: SecretStr(value) for name, value in api_key.items()}

    def _look_up(self, passed: PassedValues) -> Values:
        """Return the values of the credentials that requests use, without empty ones. Raises CredentialsMissing for a
        missing value and for a value that cannot be part of a header.
        """
        results = [each for each in KeySource.find(self._credentials, passed) if each.is_used]
        if any(each.source is None for each in results):
            raise CredentialsMissing(f"{self._provider} {_describe_missing(results)}", provider=self._provider)
        for each in results:
            if each.source not in each.credential.files and not _fits_a_header(each.value.get_secret_value()):
                wrong = f"a {each.name} with a space, a control or a non-ASCII character; set only the value itself"
                raise CredentialsMissing(f"{self._provider} has {wrong}", provider=self._provider)
        return tuple((each.credential.name, each.value) for each in results if each.value)


def _find_together(credentials: Sequence[Credential], places: _Places) -> dict[str, FoundCredential]:
    """Return the results of credentials that are used together, by name. All secret values come from one kind of
    place: the first that has one of them.
    """
    secret = [place for each in credentials if each.secret for place in places[each.name]]
    ranks = [rank for rank, source, text in secret if text or source == _ARGUMENT]
    results = {}
    for each in credentials:
        usable = [place for place in places[each.name] if not (each.secret and ranks) or place[0] == min(ranks)]
        first = next(((source, value) for _, source, value in usable if value), None)
        searched = tuple(source for _, source, _ in (places[each.name] if first else usable))
        source, value = first or (None if each.default is None else "default", SecretStr(each.default or ""))
        results[each.name] = FoundCredential(each, source, searched, value)
    return results


def _describe_missing(results: Sequence[FoundCredential]) -> str:
    """Return the message of CredentialsMissing without the provider: for each alternative the names and places of found
    values and the missing names, the places that were read, and the remedy.
    """
    names = _alternatives(each.credential for each in results)
    shared = [each for each in results if names != [""] and not (each.credential.alternative or each.value)]
    groups = {name: [each for each in results if each.credential.alternative == name] + shared for name in names}
    states = [f"{name} ({_describe_state(group)})" for name, group in groups.items()]
    missing = [each for each in results if each.source is None]
    searched = dict.fromkeys(source for each in missing for source in each.searched)
    has_other_places = searched.keys() - {name for each in missing for name in each.credential.variables}
    main = _main_name([each.credential for each in results])
    variables, passed = dict[str, None](), dict[str, None]()
    for group in groups.values():
        wanted = [" or ".join(each.credential.variables) for each in group if each.source is None]
        variables |= {text: None} if (text := " and ".join(filter(None, wanted))) else {}
        names = [each.credential.name for each in group if each.credential.default is None]
        passed |= {"api_key=" + (f"{{{', '.join(f'{name!r}: …' for name in names)}}}" if names != [main] else ""): None}
    steps = [f"looked at {', '.join(searched)}"] if has_other_places else []
    advice = f"pass {' or '.join(passed)}"
    steps.append(f"set the variable {', or '.join(variables)}, or {advice}" if variables else advice)
    what = f"needs {' or '.join(states)}" if len(groups) > 1 else f"has {_describe_state(results)}"
    return f"{what}; {'; '.join(steps)}"


def _describe_state(results: Sequence[FoundCredential]) -> str:
    available = [f"{each.name} ({each.source})" for each in results if each.value]
    names = " and no ".join(each.name for each in results if each.source is None)
    return f"{' and '.join(available) + ' but ' if available else ''}no {names}"


def _alternatives(credentials: Iterable[Credential]) -> list[str]:
    """Return the names of the alternatives, in order; [""] if there are none."""
    return [*dict.fromkeys(each.alternative for each in credentials if each.alternative)] or [""]


def _main_name(credentials: Sequence[Credential]) -> str:
    """Return the name of the credential whose value is a string passed as `api_key=`."""
    keys = (each.name for each in credentials if each.alternative and each.name == "api_key")
    return next(keys, credentials[0].name)


def _fits_a_header(value: str) -> bool:  # a function of its own, so that no variable of the caller contains the key
    return value.isascii() and value.isprintable() and " " not in value


def _look_in_places(credential: Credential, passed: PassedValues) -> Iterator[tuple[int, str, SecretStr]]:
    """Yield every place of a credential, in order: the rank of its kind, its name, and the value there or ""."""
    if credential.name in passed:
        yield 0, _ARGUMENT, passed[credential.name]
    for name in credential.variables:
        value = os.environ.get(name, "")
        yield 1, name, SecretStr(value if value.strip() else "")
    if credential.profile:
        source, values = _find_section(credential.profile, passed.get("profile", _NOTHING).get_secret_value())
        yield 2, source, SecretStr(str(values.get(credential.name, "")))
    for file in credential.files:
        path = Path(file).expanduser()
        yield 3, file, SecretStr(str(path) if path.is_file() else "")


def _find_section(profile: Profile, named: str) -> tuple[str, Mapping[str, JSONValue]]:
    """Return the place of a section in a profile's file, as text, and the section. If there is no section, the text
    says why, and the section is empty. `named` is the section that the user selected, or "".
    """
    name = named or os.environ.get(profile.variable) or profile.section
    path = Path(profile.file).expanduser()
    try:
        text = path.read_text("utf-8")
        if path.suffix == ".toml":
            sections: JSONValue = tomllib.loads(text)
        else:
            parser = RawConfigParser()
            parser.read_string("" if path.suffix == ".json" else text)
            sections = decode_json(text) if path.suffix == ".json" else {name: dict(parser[name]) for name in parser}
    except FileNotFoundError:
        return f"{profile.file} (no such file)", {}
    except (OSError, ValueError, INIInvalid, NotJSON) as error:  # its text may show a line of the file
        return f"{profile.file} (unreadable: {type(error).__name__})", {}
    section = sections.get(name) if isinstance(sections, Mapping) else None
    if not isinstance(section, Mapping):
        return f"{profile.file} (no profile {name!r})", {}
    return f"{profile.file} [{name}]", section
