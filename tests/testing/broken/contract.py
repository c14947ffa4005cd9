"""Providers that break a promise of the Protocols, one each."""

import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from sabir.contract.dialect import Dialect, ServerEventReader
from sabir.contract.provider import Access, Credential, WireRequest
from sabir.contract.turns import IdentifierRule
from sabir.errors import CredentialsMissing
from sabir.vocabulary.models import ModelInfo
from sabir_echo.batches import BATCHES

from tests.testing.broken.connections import Line
from tests.testing.broken.eager import SDK, Eager
from tests.testing.harness import Breakage, Delegate, changed, provided

LOWER_VARIABLE = "acme.key"


def mends_paths(base: Any) -> Any:
    """Its connections put path behind endpoint as they are, but for a slash where they know of one."""

    def connect(own: Any, access: Access) -> Line:
        start = f"{base.endpoint(access)}{'' if access.base_url and urlsplit(access.base_url).path else '/'}"

        def sent(request: WireRequest, connection: Any) -> WireRequest:
            return request if request.path.startswith("/") else replace(request, path=f"{start}{request.path}")

        return Line(own(access), "waiting async", sent=sent)

    return _provider(connect=connect)(base)


def looks_up(own: Any, access: Access) -> Any:
    socket.getaddrinfo("localhost", 80)
    return own(access)


class Shown(Delegate):
    """A connection with its key in its repr."""

    def __init__(self, base: Any, access: Access) -> None:
        super().__init__(base)
        self.access = access

    def __repr__(self) -> str:
        return f"<connection with the key {self.access.api_key}>"


def names_both(error: Exception, connection: Any) -> Exception:
    """Its errors name the second variable too."""
    if not isinstance(error, CredentialsMissing):
        return error
    return CredentialsMissing(str(error).replace("ACME_API_KEY", f"ACME_API_KEY or {LOWER_VARIABLE}"))


def lower_variable(base: Any) -> Any:
    """A variable of a name that no shell can set; it is read all the same."""
    (key,) = base.credentials
    base.credentials = (Credential(variables=(*key.variables, LOWER_VARIABLE)),)

    def connect(own: Any, access: Access) -> Line:
        if access.api_key is None and not os.environ.get(key.variables[0]):
            access = replace(access, api_key=os.environ.get(LOWER_VARIABLE))
        return Line(own(access), "waiting async", raised=names_both)

    return _provider(connect=connect)(base)


def _provider(**functions: Any) -> Any:
    return provided(**functions).provider


def with_calls(base: Dialect, **calls: Any) -> Mapping[str, Any]:
    return {"tables": replace(base.tables, calls=replace(base.tables.calls, **calls))}


class Wavering(Delegate):
    """Its tables are others each time, without an effect on requests: a variant for no endpoint comes and goes."""

    asked = 0

    @property
    def tables(self) -> Any:
        Wavering.asked += 1
        variants = {"unused": self.base.tables} if Wavering.asked % 2 else {}
        return replace(self.base.tables, variants={**self.base.tables.variants, **variants})


def titled(base: Any) -> Any:
    """The header with the id of a request has a second name, in upper case."""
    base.request_ids = (*base.request_ids, "X-Request-Id")
    return base


class Rowless(Delegate):
    """A provider that does not read the models file of its package."""

    __module__ = "sabir_acme.provider"

    def models(self) -> tuple[ModelInfo, ...]:
        return ()


def with_a_batch_operation(base: Any) -> Any:
    """A provider that creates batches, but never says how they are."""
    base.operations = lambda: {"batches.create": BATCHES["batches.create"]}
    return base


BROKEN = {
    "test_the_dialect_is_named_after_its_provider": Breakage(dialect=lambda base: replace(base, name="acme.talk")),
    "test_paths_begin_with_a_slash": replace(changed(path=lambda own, target: "chat"), provider=mends_paths),
    "test_the_endpoint_is_known_without_the_network": provided(endpoint=looks_up),
    "test_no_key_is_in_what_is_shown": provided(connect=lambda own, access: Shown(own(access), access)),
    "test_key_variables_are_names_of_variables": Breakage(provider=lower_variable),
    "test_tables_are_the_same_whenever_asked": Breakage(dialect=Wavering),
    "test_tables_have_known_words": Breakage(
        dialect=lambda base: replace(base, **with_calls(base, unfinished_pairs="kept"))
    ),
    "test_prompt_fields_have_names": Breakage(dialect=lambda base: replace(base, prompt_fields=("tools", ""))),
    "test_framings_are_for_content_types": Breakage(
        dialect=lambda base: replace(base, framings={"Text/X-Kit": ServerEventReader})
    ),
    "test_identifier_rules_leave_room": Breakage(
        dialect=lambda base: replace(base, **with_calls(base, names=IdentifierRule(longest=7)))
    ),
    "test_the_messages_field_is_left_to_core": changed(encode_request=lambda own, scope: {**own(scope), "turns": []}),
    "test_each_model_row_stands_once": provided(models=lambda own: (*own(), *own())),
    "test_names_of_headers_and_url_variables_are_valid": Breakage(provider=titled),
    "test_the_models_file_is_read": Breakage(provider=Rowless),
    "test_a_model_has_a_family": changed(family=lambda own, model: ""),
    "test_model_rows_misspell_nothing": provided(
        models=lambda own: (ModelInfo(prefix="old-", rejects=("temprature",)), *own())
    ),
    "test_batches_have_their_grade": Breakage(provider=with_a_batch_operation),
    "test_no_sdk_is_imported_before_the_first_send": Breakage(dialect=Eager, attributes={"sdk": SDK}),
}
