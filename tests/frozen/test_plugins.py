"""Provider plugins that `sabir new-plugin` of older versions wrote: installed from their wheels, they load and pass.

    fresh environment ◀── the frozen wheel, without its requirements
                      ◀── a .pth file: what is installed here, the checkout's packages among it

Nothing is downloaded, and nothing beyond this machine can be reached.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

from tests.third_party.stranger import GUARD, INSTALLER, SECONDS, run

ZENITH = "zenith"
SUITES = {ZENITH: ("TestZenith", r"passed"), "nadir": ("TestNadir", r"passed, \d+ expected to fail")}
"""Plugin → its class of conformance tests, and how their summary ends."""
FEWEST_CASES = 250
LOADED = """
import json, sys, sabir
name = sys.argv[1]
llm = sabir.adapter(f"{name}:small", api_key="test")
rendering = llm.render([sabir.system("Be brief."), sabir.user("Umbrella today?")])
rows = {row.name: [row.state, row.version] for row in sabir.providers()}
print(json.dumps({"row": rows[name], "from": sys.modules[f"sabir_{name}"].__file__, "sabir": sabir.__file__,
                  "text": "Umbrella today?" in rendering.body_bytes.decode()}))
"""
ANSWERED = """
import sabir
from service import running

@sabir.option
def weather(city: str) -> str:
    "Current weather in a city."
    return f"rain in {city}"

with running() as url, sabir.adapter("zenith:small", api_key="any", base_url=url) as llm:
    chat = [sabir.user("What is the weather in Rome and in Oslo?")]
    reply = llm.complete_sync(chat, options=[weather])
    chat += [*reply.messages, *sabir.answer_sync(reply, [weather])]
    print(llm.complete_sync(chat, options=[weather]).text)
    with llm.stream_sync("Hello!") as stream:
        print(stream.reply().text)
"""


class Environment:
    """A fresh environment with one frozen plugin."""

    def __init__(self, folder: Path, plugins: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.python = folder / "environment" / "bin" / "python"
        uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
        (wheel,) = plugins.glob(f"sabir_{name}-*.whl")
        run([uv, "venv", "--quiet", "--offline", "--python", sys.executable, "environment"], folder, INSTALLER)
        install = [uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", self.python, wheel]
        run(install, folder, INSTALLER)
        (site,) = (folder / "environment" / "lib").glob("python*/site-packages")
        here = sysconfig.get_path("purelib")
        (site / "checkout.pth").write_text(f"import site; site.addsitedir({here!r})\n", "utf-8")
        with tarfile.open(plugins / f"sabir-{name}-tests.tar.xz") as archive:
            archive.extractall(folder / "copy", filter="data")
        (folder / "guard").mkdir()
        shutil.copy(GUARD, folder / "guard")

    def output(self, *arguments: str) -> str:
        """The output of Python there, with the plugin's tests at hand and no network."""
        paths = [str(self.folder / "guard"), str(self.folder / "copy" / "tests")]
        variables = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
        command = [str(self.python), *arguments]
        ended = subprocess.run(
            command,
            cwd=self.folder / "copy",
            env=variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ended.returncode == 0, f"{ended.stdout[-10_000:]}\n{ended.stderr[-3_000:]}"
        return ended.stdout


@pytest.fixture(scope="module", params=SUITES)
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Made once for each plugin."""
    name: str = request.param
    plugins = Path(__file__).parent / "first" / "plugins"
    return Environment(tmp_path_factory.mktemp(name), plugins, name)


def test_the_frozen_plugin_loads_beside_the_checkout(environment: Environment) -> None:
    read = json.loads(environment.output("-c", LOADED, environment.name))

    assert read["row"] == ["installed", "0.1.0"]
    assert Path(read["from"]).is_relative_to(environment.folder / "environment")
    assert not Path(read["sabir"]).is_relative_to(environment.folder)
    assert read["text"]


@pytest.mark.parametrize("environment", [ZENITH], indirect=True)
def test_the_frozen_plugin_answers(environment: Environment) -> None:
    """By the service that came with it: calls, their results and a stream."""
    assert environment.output("-c", ANSWERED).splitlines() == ["rain in Rome rain in Oslo", "You said: Hello!"]


def test_the_frozen_plugin_passes_the_present_kit(environment: Environment) -> None:
    """Its own tests, offline, against the recordings that came with it."""
    suite, ending = SUITES[environment.name]
    text = environment.output("-m", "pytest", "-q", "-p", "offline", "-p", "no:cacheprovider", "--hypothesis-seed=0")
    summary = re.search(rf"^{suite}: (\d+) cases, \d+ {ending}$", text, re.MULTILINE)

    assert summary and int(summary[1]) > FEWEST_CASES, text[-3000:]
