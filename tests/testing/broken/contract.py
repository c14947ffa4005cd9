"""Providers that break a promise of the Protocols, one each."""

import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from sabir.contract.provider import Access, Connection, Credential
from sabir.contract.turns import IdentifierRule, Tables
from sabir.errors import CredentialsMissing
from sabir.vocabulary.settings import ModelInfo

from tests.testing.broken.eager import SDK, Eager
from tests.testing.harness import Breakage, Delegate

LOWER_VARIABLE = "acme.key"


class Misnamed(Delegate):
    name = "acme.talk"


class WithoutSlash(Delegate):
    def path_of(self, target: Any, *, streaming: bool) -> str:
        return "chat"


class MendsPaths(Delegate):
    """A connection that puts path behind endpoint as they are, but for a slash where it knows of one."""

    def connect(self, access: Access) -> Connection:
        connection = self.base.connect(access)
        between = "" if access.base_url and urlsplit(access.base_url).path else "/"
        return _Joining(connection, f"{self.base.endpoint(access)}{between}")  # type: ignore[return-value]


class _Joining(Delegate):
    def __init__(self, base: Any, start: str) -> None:
        super().__init__(base)
        self.start = start

    def open_sync(self, request: Any) -> Any:
        return self.base.open_sync(self._joined(request))

    async def open(self, request: Any) -> Any:
        return await self.base.open(self._joined(request))

    def _joined(self, request: Any) -> Any:
        return request if request.path.startswith("/") else replace(request, path=f"{self.start}{request.path}")


class LooksUp(Delegate):
    def endpoint(self, access: Access) -> str:
        socket.getaddrinfo("localhost", 80)
        return str(self.base.endpoint(access))


class Talkative(Delegate):
    def connect(self, access: Access) -> Connection:
        return _Shown(self.base.connect(access), access)  # type: ignore[return-value]  # it delegates all of it


class _Shown(Delegate):
    def __init__(self, base: Any, access: Access) -> None:
        super().__init__(base)
        self.access = access

    def __repr__(self) -> str:
        return f"<connection with the key {self.access.api_key}>"


class LowerVariable(Delegate):
    """A variable of a name that no shell can set; it is read all the same."""

    def __init__(self, base: Any) -> None:
        super().__init__(base)
        (key,) = base.credentials
        self.variables = key.variables
        self.credentials = (Credential(variables=(*self.variables, LOWER_VARIABLE)),)

    def connect(self, access: Access) -> Connection:
        if access.api_key is None and not os.environ.get(self.variables[0]):
            access = replace(access, api_key=os.environ.get(LOWER_VARIABLE))
        return _NamesBoth(self.base.connect(access))  # type: ignore[return-value]


class _NamesBoth(Delegate):
    """Its errors name the second variable too."""

    def open_sync(self, request: Any) -> Any:
        try:
            return self.base.open_sync(request)
        except CredentialsMissing as error:
            raise _naming_both(error) from None

    async def open(self, request: Any) -> Any:
        try:
            return await self.base.open(request)
        except CredentialsMissing as error:
            raise _naming_both(error) from None


def _naming_both(error: CredentialsMissing) -> CredentialsMissing:
    return CredentialsMissing(str(error).replace("ACME_API_KEY", f"ACME_API_KEY or {LOWER_VARIABLE}"), provider="acme")


def with_calls(tables: Tables, **calls: Any) -> Tables:
    return replace(tables, calls=replace(tables.calls, **calls))


class Wavering(Delegate):
    asked = 0

    @property
    def tables(self) -> Tables:
        Wavering.asked += 1
        return with_calls(self.base.tables, ids=IdentifierRule(longest=40 + Wavering.asked % 2))


class Narrow(Delegate):
    @property
    def tables(self) -> Tables:
        return with_calls(self.base.tables, names=IdentifierRule(longest=7))


class SendsMessagesTwice(Delegate):
    def encode_request(self, scope: Any) -> Mapping[str, Any]:
        return {**self.base.encode_request(scope), self.base.messages_field: []}


class Twice(Delegate):
    def models(self) -> tuple[ModelInfo, ...]:
        return (*self.base.models(), *self.base.models())


class Misspelt(Delegate):
    def models(self) -> tuple[ModelInfo, ...]:
        return (ModelInfo(prefix="old-", rejects=("temprature",)), *self.base.models())


BROKEN = {
    "test_the_dialect_is_named_after_its_provider": Breakage(dialect=Misnamed),
    "test_paths_begin_with_a_slash": Breakage(dialect=WithoutSlash, provider=MendsPaths),
    "test_the_endpoint_is_known_without_the_network": Breakage(provider=LooksUp),
    "test_no_key_is_in_what_is_shown": Breakage(provider=Talkative),
    "test_key_variables_are_names_of_variables": Breakage(provider=LowerVariable),
    "test_tables_are_the_same_whenever_asked": Breakage(dialect=Wavering),
    "test_identifier_rules_leave_room": Breakage(dialect=Narrow),
    "test_the_messages_field_is_left_to_core": Breakage(dialect=SendsMessagesTwice),
    "test_each_model_row_stands_once": Breakage(provider=Twice),
    "test_model_rows_misspell_nothing": Breakage(provider=Misspelt),
    "test_no_sdk_is_imported_before_the_first_send": Breakage(dialect=Eager, attributes={"sdk": SDK}),
}
