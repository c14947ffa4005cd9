"""Contract: rules for providers and dialects beyond their types, such as names, paths, rows of models, secrets and
imports.
"""

import difflib
import json
import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from itertools import pairwise

import sabir
from sabir.authoring import WIRE_SETTINGS, Access
from sabir.vocabulary.settings import FEATURES

from sabir_testing.kit.broken import ConformanceFailure, expect
from sabir_testing.kit.suite import AdapterUnderTest, Suite
from sabir_testing.network import NetworkForbidden, network_forbidden

KEY = "kit-key-that-nobody-sees"
FOUND = 3
LOOKS = f"""
import sys, {{modules}}, sabir
if {{model!r}} is not None:
    sabir.adapter({{model!r}}, api_key="k").render("Hello.")
sys.exit({FOUND} if {{sdk!r}} in sys.modules else 0)
"""
"""A program that does everything that needs no SDK if the provider is installed; else imports it."""
LONGEST_SHORT_NAME = 5
"""Up to this length two names may differ in one letter, as `top_p` and a vendor's `top_k`."""
SHORTEST_IDENTIFIER = 8
"""Characters that an id needs to stay apart from others in a long conversation."""


class ContractCases(Suite):
    """The contract."""

    family = "contract"

    def test_the_dialect_is_named_after_its_provider(self, subject: AdapterUnderTest) -> None:
        """A dialect's name is `<provider>.<short name>`, with the short name that the provider lists. Origins and
        opaque parts store the name, so that state is only sent back to the same dialect.
        """
        name, provider = subject.dialect.name, subject.provider
        maker, _, short = name.partition(".")
        what = f"the dialect calls itself {name!r}; provider {provider.name!r} lists {', '.join(provider.dialects)}"
        expect(maker and short in provider.dialects, f"{what}, of which one must stand behind its dot")

    def test_paths_begin_with_a_slash(self, subject: AdapterUnderTest) -> None:
        """`Dialect.path` returns a path below the endpoint that begins with a slash."""
        for streaming in (False, True):
            path = subject.dialect.path_of(subject.target, streaming=streaming)
            what = f"the path for streaming={streaming} is {path!r}; expected one such as '/chat'"
            expect(re.match(r"/[^\s/]", path), what)

    def test_the_endpoint_is_known_without_the_network(self, subject: AdapterUnderTest) -> None:
        """`Provider.endpoint` creates no client and uses no network, because it is called whenever an adapter is
        created.
        """
        try:
            with network_forbidden(loopback=False):
                endpoint = subject.provider.endpoint(Access(api_key=KEY))
        except NetworkForbidden as error:
            raise ConformanceFailure(f"Provider.endpoint reaches the network: {error}") from None
        expect(endpoint, f"the endpoint is {endpoint!r}; expected a URL")

    def test_no_key_is_in_what_is_shown(self, subject: AdapterUnderTest) -> None:
        """The `repr` of a provider and of its connection does not show the key, because logs contain such texts."""
        shown = [repr(subject.provider), repr(subject.connect(api_key=KEY))]
        expect(KEY not in "".join(shown), "the key stands in the connection's repr", shown={"the reprs": shown})

    def test_key_variables_are_names_of_variables(self, subject: AdapterUnderTest) -> None:
        """The key variables in `Provider.credentials` are valid names of environment variables, because errors tell
        users to set them.
        """
        wrong = [name for name in subject.key_variables if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name)]
        expect(not wrong, f"the key has the variables {wrong}, which no shell can set; expected such as ACME_API_KEY")

    def test_tables_are_the_same_whenever_asked(self, subject: AdapterUnderTest) -> None:
        """`Dialect.tables` is the same for two instances of the dialect and at every access, because renderings depend
        on it.
        """
        again = subject.provider.dialect(subject.short_name)
        is_same = subject.dialect.tables == subject.dialect.tables == again.tables
        expect(is_same, f"{subject.dialect.name} gives other tables when asked again; make them a constant")

    def test_identifier_rules_leave_room(self, subject: AdapterUnderTest) -> None:
        """An IdentifierRule has a valid expression for characters, and a maximum length that leaves enough different
        identifiers.
        """
        calls = subject.tables.calls
        for name, rule in (("call_ids", calls.ids), ("option_names", calls.names)):
            what = f"tables.{name} takes {rule.longest} characters of {rule.characters}; expected at least"
            leaves_room = rule.longest >= SHORTEST_IDENTIFIER and re.fullmatch(rule.characters, "a")
            expect(leaves_room, f"{what} {SHORTEST_IDENTIFIER}, the letter a among them")

    def test_the_messages_field_is_left_to_core(self, subject: AdapterUnderTest) -> None:
        """`encode_request` does not return the messages field, because core adds the encoded turns itself."""
        body = subject.rendered([sabir.user("Hello.")]).body_bytes
        names: list[str] = json.loads(body, object_pairs_hook=lambda pairs: [name for name, _ in pairs])
        field = subject.dialect.messages_field
        what = f"encode_request gives {field!r} too, which is the messages field; leave it out"
        expect(names.count(field) == 1, what)

    def test_each_model_row_stands_once(self, subject: AdapterUnderTest) -> None:
        """Every prefix of model names occurs in one row only."""
        prefixes = sorted(info.prefix for info in subject.provider.models())
        twice = [one for one, other in pairwise(prefixes) if one == other]
        expect(not twice, f"models() has two rows for the prefix {', '.join(map(repr, twice))}; join them")

    def test_model_rows_misspell_nothing(self, subject: AdapterUnderTest) -> None:
        """`ModelInfo.rejects` contains only names of settings, features and quirks that the dialect knows. A misspelt
        name would have no effect.
        """
        known = {*WIRE_SETTINGS, *FEATURES}
        long = [name for name in known if len(name) > LONGEST_SHORT_NAME]
        for info in subject.provider.models():
            for name in sorted(set(info.rejects) - known):
                near = difflib.get_close_matches(name, long, n=1, cutoff=0.8)
                expect(not near, f"the row {info.prefix!r} rejects {name!r}; did you mean {' '.join(near)!r}?")

    def test_no_sdk_is_imported_before_the_first_send(self, subject: AdapterUnderTest) -> None:
        """Listing, rendering and decoding do not import the vendor's SDK (the suite's `sdk`), because the import is
        slow.
        """
        if self.sdk and not _can_be_imported(self.sdk):
            raise ConformanceFailure(
                f"the suite's sdk {self.sdk!r} cannot be imported; give the module of the vendor's SDK"
            )
        held = (type(subject.provider), type(subject.dialect), subject.dialect.encode_turn)
        modules = sorted({each.__module__ for each in held})
        is_found_elsewhere = any(point.name == subject.provider.name for point in entry_points(group="sabir.providers"))
        model = subject.model_name if is_found_elsewhere else None
        program = LOOKS.format(modules=", ".join(modules), model=model, sdk=self.sdk or "no.module.of.a.vendor")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)
        what = f"{' and '.join(modules)} cannot be imported, or render nothing, in a process of their own"
        expect(done.returncode in (0, FOUND), what, shown={"what was said": done.stderr.decode()})
        what = f"{self.sdk} is imported before anything is sent; import it inside the connection, at the first send"
        expect(done.returncode == 0, what)


def _can_be_imported(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
