"""Discovery: what is installed is found by its metadata, loaded when it is asked for, and never stops another."""

import importlib
import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from sabir import discovery as points
from sabir.contract.provider import Credential, Provider
from sabir.discovery import ModelName, ProviderStatus, Registry, default_registry
from sabir.errors import DialectMissing, PluginConflict, ProviderBroken, ProviderMissing, SettingsInvalid
from sabir.hooks.plugins import installed_hooks

from tests.core.distributions import Install, finish_loading

KEYS = '(Credential(variables=("ACME_KEY",)),)'
ACME = """
from sabir.contract.provider import Credential
from sabir.vocabulary.models import ModelInfo

class Acme:
    name = "acme"
    api_version = 1
    dialects = ("talk", "wire")
    credentials = (Credential(variables=("ACME_KEY",)),)
    request_ids = ("x-request-id",)
    def dialect(self, short_name): return f"the dialect {short_name}"
    def endpoint(self, access): return "https://acme.example"
    def connect(self, access): raise NotImplementedError
    def quirks(self, access): return frozenset()
    def models(self): return (ModelInfo(prefix="a"), ModelInfo(prefix="a-large"), ModelInfo(prefix=""))

acme = Acme()
"""
RAISING = ACME.replace(f"    credentials = {KEYS}", "    @property\n    def credentials(self): %s")
MORE = ACME.replace("    def dialect(", "    %s\n    def dialect(")
FINE = ACME.replace('"acme"', '"fine"')
POINT = {"sabir.providers": {"acme": "acme_plugin:acme"}}
FINE_POINT = {"sabir.providers": {"fine": "fine_plugin:acme"}}


@pytest.fixture
def acme(install: Install) -> Registry:
    """A registry that finds the provider `acme`."""
    install("sabir-acme", POINT, version="2.5", acme_plugin=ACME)
    return Registry()


def status(registry: Registry, name: str) -> ProviderStatus:
    return next(each for each in registry.providers() if each.name == name)


def test_a_provider_is_found_by_its_entry_point(acme: Registry, install: Install) -> None:
    """CD-04: enumerating reads metadata alone; one plugin's load touches no other; the same object is given again."""
    install("sabir-other", {"sabir.providers": {"other": "other_plugin:other"}}, other_plugin=ACME)
    with pytest.raises(ProviderMissing):
        acme.provider("nobody")
    assert "acme_plugin" not in sys.modules
    provider = acme.provider("acme")

    assert "other_plugin" not in sys.modules
    assert isinstance(provider, Provider)
    assert acme.provider("acme") is provider
    key = Credential(variables=("ACME_KEY",))
    assert status(acme, "acme") == ProviderStatus(
        name="acme", distribution="sabir-acme", version="2.5", state="installed", dialects=("talk", "wire"),
        credentials=(key,),
    )  # fmt: skip


MISSING = {
    "zorg": "pip install sabir-zorg, if it exists, or install another package that provides 'zorg'",
    "acme-eu": "pip install sabir-acme-eu, if it exists",
    "acne": "did you mean 'acme'?",
    "acm": "did you mean 'acme'?",
    "gai": "pip install sabir-gai, if it exists",
    "Zorg x; rm": "; install another package that provides 'Zorg x; rm'",
}


def test_a_missing_provider_names_the_package_to_install(acme: Registry) -> None:
    """CD-05: the package's name follows from the provider's; another vendor of three letters is no typing error."""
    assert "xai" in acme.names()
    for name, words in MISSING.items():
        with pytest.raises(ProviderMissing, match=re.escape(words)) as caught:
            acme.provider(name)
        assert ("did you mean" in str(caught.value)) == ("did you mean" in words)
        assert ("pip install" in str(caught.value)) == ("pip install" in words)


def test_installed_packages_say_what_to_write_for_a_name_that_no_provider_has(acme: Registry, install: Install) -> None:
    hints = {"sabir.hints": {"acne": "first_hints:ACNE", "zorg": "nowhere:ZORG"}}
    install("a-first", hints, first_hints='ACNE = "write\\nacme:model"')
    install("b-second", {"sabir.hints": {"acne": "second_hints:ACNE"}}, second_hints='ACNE = "or see a doctor"')

    with pytest.raises(ProviderMissing, match=r"'acne' is not installed; .*; write acme:model; or see a doctor$"):
        acme.provider("acne")
    with pytest.raises(ProviderMissing, match=r"'zorg' is not installed; .*; pip install sabir-zorg, if it exists"):
        acme.provider("zorg")


def test_the_import_of_an_editable_install_is_to_be_fixed(install: Install, tmp_path: Path) -> None:
    """Its code is the author's, who cannot reinstall it to mend it."""
    install("mine", {"sabir.providers": {"mine": "of_mine:mine"}}, of_mine="from sabir import no_such_name")
    (metadata,) = (tmp_path / "site").glob("mine-*.dist-info")
    origin = {"url": "file:///src/sabir-mine", "dir_info": {"editable": True}}
    (metadata / "direct_url.json").write_text(json.dumps(origin))

    with pytest.raises(ProviderBroken, match=r"no_such_name.*; fix the import$"):
        Registry().provider("mine")


def test_no_lock_is_held_while_a_hint_loads(install: Install) -> None:
    source = "from sabir.discovery import default_registry\nACNE = f'not among {len(default_registry.names())}'"
    install("a-first", {"sabir.hints": {"acne": "asking_hints:ACNE"}}, asking_hints=source)

    with pytest.raises(ProviderMissing, match=r"; not among \d+$"):
        default_registry.provider("acne")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import nothing_of_this_name", "cannot be loaded: ModuleNotFoundError: No module named 'nothing_of"),
        ("raise SystemExit(3)", "cannot be loaded: SystemExit: 3"),
        ("class Out(BaseException): ...\nraise Out('of order')", "cannot be loaded: Out: of order"),
        ("raise ValueError('two\\nlines')", "cannot be loaded: ValueError: two lines"),
        ("other = 1", "cannot be loaded: AttributeError"),
        (ACME.replace("api_version = 1", "api_version = 99"), "99; this sabir supports 1, 2: update it, or sabir"),
        (ACME.replace("acme = Acme()", "acme = Acme"), "is the class Acme; pass an instance of it"),
        (ACME.replace("def quirks", "def other"), "does not have quirks; see sabir.authoring.Provider"),
        ("acme = None", "have api_version, connect, credentials, dialect, dialects, endpoint, models, name, quirks, "),
        (ACME.replace('name = "acme"', 'name = "emca"'), "has the `name` 'emca'; the two names must be equal"),
        (ACME.replace('("talk", "wire")', "()"), "has no dialect; its `dialects`"),
        (ACME.replace('("talk", "wire")', "5"), "has dialects of type int; pass a tuple or list of str"),
        (ACME.replace('("talk", "wire")', "(5,)"), "has dialects of type tuple; pass a tuple or list of str"),
        (ACME.replace(KEYS, "None"), "has credentials of type NoneType; pass a tuple or list of Credential"),
        (ACME.replace("api_version = 1", "api_version = []"), r"api_version \[\]; this sabir supports 1, 2"),
        (RAISING % "1 / 0", "cannot be read: ZeroDivisionError: division by zero; update or remove it"),
        (RAISING % "raise SystemExit(4)", "cannot be read: SystemExit: 4; update or remove it"),
        (MORE % "def __getattribute__(self, name): raise RuntimeError('boom')", "boom"),
        (MORE % "@property\n    def __class__(self): raise RuntimeError('boom')", "boom"),
        (MORE % "@property\n    def name(self): raise SystemExit('boom')", "boom"),
        (MORE % "@property\n    def reserves_name(self): raise RuntimeError('boom')", "boom"),
    ],
    ids=range(21),
)  # fmt: skip
def test_a_broken_plugin_is_reported_by_name_and_stops_no_other(install: Install, source: str, words: str) -> None:
    """CD-13: in one line, the same each time it is asked for."""
    install("sabir-acme", POINT, acme_plugin=source)
    install("sabir-fine", FINE_POINT, fine_plugin=FINE)
    registry = Registry()

    assert status(registry, "fine").state == "installed"
    assert [info.prefix for info in registry.models("fine")] == ["a-large", "a", ""]
    found = status(registry, "acme")
    assert (found.state, found.distribution) == ("failed", "sabir-acme")
    for _ in range(2):
        with pytest.raises(ProviderBroken, match=words) as caught:
            registry.provider("acme")
        assert str(caught.value) == found.error
        assert "'acme' of sabir-acme 1.0" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_interrupt_while_a_plugin_loads_is_the_users(install: Install) -> None:
    install(
        "sabir-acme", POINT, acme_plugin=f"import sys\nif sys.acme_interrupts.pop(): raise KeyboardInterrupt\n{ACME}"
    )
    registry = Registry()
    for ask in (lambda: registry.provider("acme"), registry.providers):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(sys, "acme_interrupts", [True, True], raising=False)
            ask()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "acme_interrupts", [False], raising=False)
        assert registry.provider("acme").name == "acme"


@pytest.fixture
def hanging(install: Install, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """A provider `acme` whose import waits for this event, and a provider `fine`."""
    go_on = threading.Event()
    monkeypatch.setattr(sys, "acme_goes_on", go_on, raising=False)
    monkeypatch.setattr(points, "LONGEST_LOAD", 1.0)
    install("sabir-acme", POINT, acme_plugin=f"import sys; sys.acme_goes_on.wait()\n{ACME}")
    install("sabir-fine", FINE_POINT, fine_plugin=FINE)
    return go_on


def test_a_plugin_that_does_not_finish_loading_is_reported_by_name_until_it_does(hanging: threading.Event) -> None:
    registry = Registry()
    for _ in range(2):
        found = status(registry, "acme")
        assert found.state == "failed"
        assert (
            found.error
            == "'acme' of sabir-acme 1.0 (acme_plugin:acme) did not finish loading within 1 s; update or remove it"
        )
    assert status(registry, "fine").state == "installed"

    assert finish_loading(hanging) == 1
    assert registry.provider("acme").name == "acme"
    assert status(registry, "acme").state == "installed"


def test_no_lock_is_held_while_a_plugin_loads(hanging: threading.Event) -> None:
    registry = Registry()
    waiting = threading.Thread(target=registry.provider, args=("acme",))
    waiting.start()
    others = threading.Thread(
        target=lambda: (
            registry.provider("fine"),
            installed_hooks.__wrapped__(),
            registry.commands(),
            registry.register("m", an_acme(name="m")),
        )
    )
    others.start()
    others.join(20)
    was_held = others.is_alive()
    hanging.set()
    waiting.join()
    others.join()

    assert not was_held
    assert {"acme", "fine", "m"} <= {each.name for each in registry.providers()}


def test_models_that_a_provider_cannot_tell_are_its_own_failure(install: Install) -> None:
    for number, instead in enumerate(("1 / 0", "raise SystemExit", "return 5", "return (5,)")):
        name = f"acme{number}"
        source = ACME.replace('"acme"', f'"{name}"').replace("return (Model", f"{instead}; return (Model")
        install(f"sabir-{name}", {"sabir.providers": {name: f"{name}_plugin:acme"}}, **{f"{name}_plugin": source})
        with pytest.raises(ProviderBroken, match=f"the models of provider '{name}' cannot be read: "):
            Registry().models(name)


def test_a_distribution_without_metadata_hides_no_provider(install: Install, tmp_path: Path) -> None:
    install("sabir-acme", POINT, acme_plugin=ACME)
    next(tmp_path.glob("site/sabir_acme*/METADATA")).unlink()
    importlib.invalidate_caches()
    found = status(Registry(), "acme")

    assert (found.state, found.distribution, found.version) == ("installed", "", "")


def test_a_broken_plugin_is_loaded_once_and_one_installed_meanwhile_is_found(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[int] = []
    monkeypatch.setattr(sys, "acme_loads", loads, raising=False)
    install("sabir-acme", POINT, acme_plugin="import sys; sys.acme_loads.append(1); raise ValueError")
    registry = Registry()
    for _ in range(3):
        assert status(registry, "acme").state == "failed"
    assert loads == [1]
    with pytest.raises(ProviderMissing):
        registry.provider("fine")
    install("sabir-fine", FINE_POINT, fine_plugin=FINE)

    assert registry.provider("fine").name == "fine"


def an_acme(**changes: Any) -> Any:
    namespace: dict[str, Any] = {}
    exec(ACME, namespace)
    provider = namespace["acme"]
    vars(provider).update(changes)
    return provider


def test_a_provider_can_be_registered_at_run_time(acme: Registry) -> None:
    mine = an_acme(name="mine")
    for _ in range(2):
        acme.register("mine", mine)

    assert (acme.provider("mine"), status(acme, "mine").state) == (mine, "registered")
    from_package = r"'acme' is already provided by sabir-acme 2.5; register yours under another"
    for name, provider, kind, words in (
        ("acme", an_acme(), PluginConflict, from_package),
        ("mine", an_acme(name="mine"), PluginConflict, r"'mine' is already provided by an earlier sabir.register"),
        ("third", object(), ProviderBroken, r"'third' of sabir.register does not have"),
        ("other", an_acme(), ProviderBroken, "has the `name` 'acme'"),
    ):
        with pytest.raises(kind, match=words):
            acme.register(name, provider)
    assert not {"third", "other"} & {each.name for each in acme.providers()}
    acme.unregister("mine")
    for ask, words in (
        (acme.provider, "'mine' is not installed"),
        (acme.unregister, "was not registered with sabir.register"),
    ):
        with pytest.raises(ProviderMissing, match=words):
            ask("mine")


def test_a_models_name_is_split_at_its_first_colon(acme: Registry) -> None:
    assert acme.split_model("acme:large") == ModelName("acme", None, "large")
    assert acme.split_model("acme.wire:large") == ModelName("acme", "wire", "large")
    assert acme.split_model("acme:ft:large:v1.2") == ModelName("acme", None, "ft:large:v1.2")
    assert acme.split_model("acme.talk:org/large.gguf") == ModelName("acme", "talk", "org/large.gguf")
    assert [info.prefix for info in acme.models("acme")] == ["a-large", "a", ""]


def test_a_name_of_another_form_shows_the_right_one(acme: Registry) -> None:
    form = SettingsInvalid, "is not a model string; write provider:model or provider.dialect:model"
    misspelt = ("large", "acme", "acme:", ":large", "", ":", "acme.:large", ".wire:large")
    wrong: dict[str, tuple[type[Exception], str]] = dict.fromkeys(misspelt, form)
    wrong["acme.chant:large"] = (DialectMissing, "'acme.chant' is not a dialect; acme has acme.talk, acme.wire")
    wrong["zorg:large"] = (ProviderMissing, "'zorg' is not installed")
    for name, (kind, words) in wrong.items():
        with pytest.raises(kind, match=words):
            acme.split_model(name)


def test_commands_are_found_and_not_loaded(install: Install) -> None:
    install(
        "more", {"sabir.commands": {"tell": "more_commands:tell", "ask": "more_commands:ask"}}, more_commands="1 / 0"
    )

    assert {"ask", "tell"} <= {point.name for point in Registry().commands()}
    assert "more_commands" not in sys.modules
    install("still-more", {"sabir.commands": {"tell": "other:tell"}})
    with pytest.raises(PluginConflict, match=r"sabir.commands 'tell' is provided by more 1.0 and still-more 1.0"):
        Registry().commands()


def test_threads_that_ask_at_once_get_one_provider(install: Install) -> None:
    install("sabir-acme", POINT, acme_plugin=f"import time; time.sleep(0.05)\n{ACME}")
    registry, found = Registry(), []
    barrier = threading.Barrier(8)

    def ask() -> None:
        barrier.wait()
        found.append(registry.provider("acme"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 8
    assert len({id(provider) for provider in found}) == 1


def test_the_registry_of_this_process_finds_the_echo_plugin() -> None:
    """A fresh interpreter: the entry point is real, and naming the providers imports no module of a plugin."""
    program = (
        "import sys; from sabir import discovery as registry; from importlib.metadata import entry_points\n"
        "assert registry.provider('echo').name == 'echo'\n"
        "loaded = sorted({name.partition('.')[0] for name in sys.modules if name.startswith('sabir_')})\n"
        "print(loaded)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "['sabir_echo']"
