"""Contract: rules for providers and dialects beyond their types, such as names, paths, rows of models, secrets and
imports.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib.metadata import entry_points, packages_distributions
from importlib.resources import files
from importlib.util import find_spec
from itertools import pairwise
from typing import Literal, get_args, get_origin, get_type_hints

import sabir
from sabir.authoring import WIRE_SETTINGS, Access, Side, Tables, did_you_mean
from sabir.vocabulary.settings import FEATURES

from sabir_testing.kit.capabilities import FULL, MODALITIES, REFUSED
from sabir_testing.kit.failures import ConformanceFailure, expect
from sabir_testing.kit.suite import AdapterUnderTest, Suite, since_api
from sabir_testing.network import NetworkForbidden, network_forbidden

KEY = "kit-key-that-nobody-sees"
SDK_IMPORTED = 3
IMPORT_PROGRAM = f"""
import sys, {{modules}}, sabir
if {{model!r}} is not None:
    sabir.adapter({{model!r}}, api_key="k").render("Hello.")
sys.exit({SDK_IMPORTED} if {{sdk!r}} in sys.modules else 0)
"""
"""A program that imports the provider and, if the provider is installed, renders a request. Neither needs the SDK."""
LONGEST_SHORT_NAME = 5
"""Names up to this length are not checked for typing errors: `top_p` and a vendor's `top_k` differ in one letter."""
OWN_PARTS = frozenset({"reasoning", "refusal", "opaque"})
"""The kinds of parts in `Roles.native`."""
CONTENT_TYPE = re.compile(r"[a-z]+/[^\sA-Z]*$")
BATCH_OPERATIONS = frozenset({"batches.create", "batches.status", "batches.cancel"})
"""The operations of every provider with batches. A status names the operation that reads its results."""
SHORTEST_IDENTIFIER = 8
"""The smallest `longest` of an IdentifierRule: shorter ids would repeat in a long conversation."""


class ContractCases(Suite):
    """The test cases of the family `contract`."""

    family = "contract"

    def test_the_dialect_is_named_after_its_provider(self, subject: AdapterUnderTest) -> None:
        """A dialect's name is `<provider>.<short name>`, with a short name that this provider lists. The part before
        the dot may be another provider, whose dialect this one uses. Origins and opaque parts store the name, so that
        state is only sent back to the same dialect.
        """
        name, provider = subject.dialect.name, subject.provider
        maker, _, short = name.partition(".")
        what = f"Dialect.name is {name!r}; expected '<provider>.<short name>' with a short name from Provider.dialects"
        expect(maker and short in provider.dialects, f"{what}: {', '.join(provider.dialects)}")

    def test_paths_begin_with_a_slash(self, subject: AdapterUnderTest) -> None:
        """The path of a request below the endpoint begins with exactly one slash. A name follows the slash."""
        for streaming in (False, True):
            path = subject.dialect.path_of(subject.target, streaming=streaming)
            what = f"Dialect.path returns {path!r} for streaming={streaming}; expected a path such as '/chat'"
            expect(re.match(r"/[^\s/]", path), what)

    def test_the_endpoint_is_known_without_the_network(self, subject: AdapterUnderTest) -> None:
        """`Provider.endpoint` returns a text that is not empty, and uses no network, because it is called whenever an
        adapter is created.
        """
        try:
            with network_forbidden(loopback=False):
                endpoint = subject.provider.endpoint(Access(api_key=KEY))
        except NetworkForbidden as error:
            raise ConformanceFailure(f"Provider.endpoint uses the network: {error}") from None
        expect(endpoint, f"Provider.endpoint returns {endpoint!r}; expected a URL")

    def test_no_key_is_in_what_is_shown(self, subject: AdapterUnderTest) -> None:
        """The `repr` of a provider and of its connection does not show the key, because logs contain such texts."""
        reprs = [repr(subject.provider), repr(subject.connect(api_key=KEY))]
        what = "the repr() of the provider or of its connection shows the API key; leave the key out of __repr__"
        expect(KEY not in "".join(reprs), what, details={"the reprs": reprs})

    def test_key_variables_are_names_of_variables(self, subject: AdapterUnderTest) -> None:
        """The variables of the first entry in `Provider.credentials` have names of capital letters, digits and
        underscores, because errors tell users to set them.
        """
        wrong = [name for name in subject.key_variables if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name)]
        what = f"Provider.credentials names the key variables {wrong}, which are not names of environment variables"
        expect(not wrong, f"{what}; use capitals, digits and _, as in ACME_API_KEY")

    @since_api(2)
    def test_names_of_headers_and_url_variables_are_valid(self, subject: AdapterUnderTest) -> None:
        """The names in `Provider.request_ids` are names of headers in lower case, and those in `url_variables`, which
        providers of the class SDKProvider have, are names of variables.
        """
        provider = subject.provider
        wrong = [name for name in provider.request_ids if not re.fullmatch(r"[a-z0-9-]+", name)]
        what = f"Provider.request_ids has {wrong}, which are not names of headers"
        expect(not wrong, f"{what}; use lower-case letters, digits and -, as in x-request-id")
        wrong = [name for name in getattr(provider, "url_variables", ()) if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name)]
        what = f"Provider.url_variables has {wrong}, which are not names of environment variables"
        expect(not wrong, f"{what}; use capitals, digits and _, as in ACME_BASE_URL")

    def test_tables_are_the_same_whenever_asked(self, subject: AdapterUnderTest) -> None:
        """`Dialect.tables` is the same for two instances of the dialect and at every access, because renderings depend
        on it.
        """
        again = subject.provider.dialect(subject.short_name)
        is_same = subject.dialect.tables == subject.dialect.tables == again.tables
        what = f"Dialect.tables of {subject.dialect.name!r} differs between two accesses or instances of the dialect"
        expect(is_same, f"{what}; expected equal tables: make them a module constant")

    @since_api(2)
    def test_tables_have_known_words(self, subject: AdapterUnderTest) -> None:
        """The words in `Dialect.tables`, such as the sides of `Roles.native` and the value of `Calls.results`, are
        those that core knows. Core takes an unknown word for the default, or ignores it.
        """
        wrong = [f"{where} {word!r}" for where, word in _unknown_words(subject.dialect.tables)]
        what = f"Dialect.tables has unknown words: {', '.join(wrong)}"
        expect(not wrong, f"{what}; expected those of the class's docstring")

    @since_api(2)
    def test_prompt_fields_have_names(self, subject: AdapterUnderTest) -> None:
        """`Dialect.prompt_fields` and `cache_markers` contain names of fields that are not empty, each once. The cause
        of an unused prompt cache is looked for in these fields.
        """
        for attribute in ("prompt_fields", "cache_markers"):
            names = getattr(subject.dialect, attribute, ())
            is_right = all(names) and len(set(names)) == len(names)
            expect(is_right, f"Dialect.{attribute} is {names}; expected different names of fields")

    def test_identifier_rules_leave_room(self, subject: AdapterUnderTest) -> None:
        """An IdentifierRule has an expression that allows the letter `a`, and a maximum length of at least 8, so that
        there are enough different identifiers.
        """
        calls = subject.tables.calls
        for name, rule in (("ids", calls.ids), ("names", calls.names)):
            what = f"tables.calls.{name} allows {rule.longest} characters that match {rule.characters!r}; expected"
            leaves_room = rule.longest >= SHORTEST_IDENTIFIER and re.fullmatch(rule.characters, "a")
            expect(leaves_room, f"{what} longest >= {SHORTEST_IDENTIFIER} and characters that match 'a'")

    def test_the_messages_field_is_left_to_core(self, subject: AdapterUnderTest) -> None:
        """`encode_request` does not return the messages field, because core adds the encoded turns itself."""
        body = subject.must_render([sabir.user("Hello.")]).body_bytes
        names: list[str] = json.loads(body, object_pairs_hook=lambda pairs: [name for name, _ in pairs])
        field = subject.dialect.messages_field
        what = f"encode_request returns the messages field {field!r}, which core adds itself; leave the field out"
        expect(names.count(field) == 1, what)

    def test_each_model_row_stands_once(self, subject: AdapterUnderTest) -> None:
        """Every prefix of model names occurs in one row only."""
        prefixes = sorted(info.prefix for info in subject.provider.models())
        twice = [one for one, other in pairwise(prefixes) if one == other]
        what = f"Provider.models() returns several rows with the prefix {', '.join(map(repr, twice))}"
        expect(not twice, f"{what}; merge them into one row")

    @since_api(2)
    def test_the_models_file_is_read(self, subject: AdapterUnderTest) -> None:
        """If the provider's package has a file `models.toml` with rows, `Provider.models` returns rows."""
        package = sys.modules[type(subject.provider).__module__].__package__ or ""
        distributions = {each.distribution for each in sabir.providers() if each.name == subject.provider.name}
        if distributions.isdisjoint(["", *packages_distributions().get(package, ())]):
            return  # the class is another package's, whose file is about other models
        file = files(package).joinpath("models.toml") if package else None
        rows = tomllib.loads(file.read_text("utf-8")).get("models", []) if file is not None and file.is_file() else []
        what = f"the package {package} has a models.toml with {len(rows)} rows, but Provider.models() returns none"
        expect(not rows or subject.provider.models(), f"{what}; set SDKProvider.package to {package!r}")

    @since_api(2)
    def test_framings_are_for_content_types(self, subject: AdapterUnderTest) -> None:
        """The keys of `Dialect.framings` are content types in lower case, such as "application/x-ndjson", or beginnings
        with a slash. An empty key would match every response, also an error as JSON.
        """
        wrong = [kind for kind in getattr(subject.dialect, "framings", {}) if not CONTENT_TYPE.match(kind)]
        what = f"Dialect.framings has the keys {wrong}; expected content types such as 'application/x-ndjson', in lower"
        expect(not wrong, f"{what} case")

    @since_api(2)
    def test_a_model_has_a_family(self, subject: AdapterUnderTest) -> None:
        """`Dialect.family` returns a name that is not empty. With an empty name, models of all lines would get each
        other's signed state.
        """
        name = subject.dialect.family(subject.target.model)
        expect(name, f"Dialect.family({subject.target.model!r}) is {name!r}; return the name of the model's line")

    def test_model_rows_misspell_nothing(self, subject: AdapterUnderTest) -> None:
        """No name in `ModelInfo.rejects` looks like a misspelt setting or feature, because such a name would have no
        effect. Settings and features with up to 5 characters are not compared. Names that are not similar to one are
        allowed.
        """
        known = {*WIRE_SETTINGS, *FEATURES}
        long = [name for name in known if len(name) > LONGEST_SHORT_NAME]
        for info in subject.provider.models():
            for name in sorted(set(info.rejects) - known):
                question = did_you_mean(name, long, "", cutoff=0.8)
                what = f"the row {info.prefix!r} of Provider.models() has the unknown name {name!r} in `rejects`"
                expect(not question, f"{what}; {question}")

    @since_api(2)
    def test_batches_have_their_grade(self, subject: AdapterUnderTest) -> None:
        """The capability "batches" is FULL if `provider.operations()` has the operations batches.create, batches.status
        and batches.cancel, and REFUSED if it has no operation of batches.
        """
        names = {name for name in getattr(subject.provider, "operations", dict)() if name.startswith("batches.")}
        missing = sorted(BATCH_OPERATIONS - names) if names else []
        expect(not missing, f"Provider.operations() has {', '.join(sorted(names))}; add {', '.join(missing)}")
        subject.grade("batches", FULL if names else REFUSED)

    def test_no_sdk_is_imported_before_the_first_send(self, subject: AdapterUnderTest) -> None:
        """Importing the provider and, if its package is installed, rendering a request do not import the vendor's SDK
        (the suite's `sdk`), because that import is slow.
        """
        if self.sdk and not _can_be_imported(self.sdk):
            what = f"the module {self.sdk!r} in the suite's `sdk` cannot be imported; set `sdk` to the vendor's module"
            raise ConformanceFailure(what)
        definitions = (type(subject.provider), type(subject.dialect), subject.dialect.encode_turn)
        modules = sorted({each.__module__ for each in definitions})
        is_found_elsewhere = any(point.name == subject.provider.name for point in entry_points(group="sabir.providers"))
        model = subject.model_name if is_found_elsewhere else None
        sdk = self.sdk or "no.module.of.a.vendor"
        program = IMPORT_PROGRAM.format(modules=", ".join(modules), model=model, sdk=sdk)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        process = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)
        what = f"importing {' and '.join(modules)} and rendering a request fails in a new Python process"
        expect(process.returncode in (0, SDK_IMPORTED), what, details={"the error output": process.stderr.decode()})
        what = f"the SDK {self.sdk!r} is imported before the first request; import it inside open() and open_sync()"
        expect(process.returncode == 0, what)


def _unknown_words(record: object, where: str = "tables") -> Iterator[tuple[str, object]]:
    """Yield the words of a table that core does not know, each with its place."""
    for name, hint in get_type_hints(type(record)).items():
        content, place = getattr(record, name), f"{where}.{name}"
        if get_origin(hint) is Literal and content not in get_args(hint):
            yield place, content
        elif is_dataclass(content):
            yield from _unknown_words(content, place)
    if isinstance(record, Tables):
        known = {*get_args(Side), *MODALITIES}
        words = [(f"{where}.media", word) for row in record.media for word in row]
        words += [(f"{where}.roles.native", side) for side in record.roles.native]
        yield from ((place, word) for place, word in words if word not in known)
        kinds = {kind for accepted in record.roles.native.values() for kind in accepted}
        yield from ((f"{where}.roles.native", kind) for kind in sorted(kinds - OWN_PARTS))


def _can_be_imported(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
