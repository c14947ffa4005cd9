"""`sabir demo`: hold one conversation with a real model, then convert it for every other dialect and vendor.

    1  question ──▶ model ──call──▶ option ──result──▶ model ──▶ answer, as it arrives
    2  this history ──render──▶ each installed dialect: the losses, and with --bodies the request bodies
    3  this history ──send──▶ each vendor named with -m; with --vendors, all vendors whose key is set

The output fits a screen of 80 columns and 24 lines.

Without --vendors, only vendors named with -m get requests. Nothing is scripted: another question leads to another call,
result and answer. A failing step prints one line, and the demonstration continues.
"""

import asyncio
import functools
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo, available_timezones

import sabir
from cyclopts import Parameter
from rich.cells import cell_len
from rich.columns import Columns
from rich.padding import Padding
from rich.text import Text
from sabir.authoring import printable

from sabir_cli.conversation import Spoken, describe_call, describe_result, needs_loop, speak
from sabir_cli.exits import Exit
from sabir_cli.facts import open_adapter
from sabir_cli.failures import exit_of, explain
from sabir_cli.inputs import EMBEDDED, JSONFlag, OptionFlags, choose_model, known_models, load_options
from sabir_cli.losses import describe_loss
from sabir_cli.output import LOSS_STYLES, Output
from sabir_cli.providers import first_missing, has_key, spoken_dialects
from sabir_cli.render import View, show
from sabir_cli.sheet import Sheet

QUESTION = "What time is it in Paris?"
SYSTEM = "Be brief."
CHOOSE = sabir.Settings(option_choice="required", parallel_options=False, temperature=0, max_output_tokens=200)
"""The settings of the first request, whose reply must be an option call."""
ANSWER = sabir.Settings(option_choice="none", temperature=0, max_output_tokens=200)
"""The settings of the second request, whose reply must be text."""
LABEL = 8
"""Width of the labels in columns."""
SMALL = (
    "{model} is small: it chooses among functions and repeats their results. It does not reason, "
    "and its facts are not reliable."
)
MORE = "More: --bodies (show each request), --vendors (ask all vendors whose key is set)"
MEANINGS: dict[str, str] = {
    "dropped": "not sent", "downgraded": "sent in a weaker form", "relocated": "sent at another place",
    "rewritten": "sent with other characters, same meaning", "synthesized": "added, because the API requires it",
    "withheld": "private data of another provider, not sent",
}  # fmt: skip
"""Kind of loss → what happened to the content, in a few words."""


def demo(
    question: Annotated[str, Parameter(help="What to ask.")] = QUESTION,
    /,
    *,
    model: Annotated[
        list[str] | None,
        Parameter(
            name=["-m", "--model"],
            negative="",
            help="provider:model to talk to; repeat to send the history to models of other vendors.",
        ),
    ] = None,
    vendors: Annotated[
        bool, Parameter(negative="", help="Send the history to every vendor whose key is in the environment.")
    ] = False,
    bodies: Annotated[bool, Parameter(negative="", help="Show each request body, and explain each loss.")] = False,
    option: OptionFlags = None,
    as_json: JSONFlag = False,
) -> int:
    """Let a real model call a function, and show how other vendors' APIs accept the conversation.

    Without -m, $SABIR_MODEL or `sabir config`, the demo uses the local model,
    which needs no key and no network.
    """
    options = load_options(option) or (sabir.option(time_in),)
    named = list(model or [choose_model(None)])
    demonstration = _Demonstration(Output(machine=as_json), options, named)
    demonstration.hold(named[0], question)
    demonstration.render(bodies=bodies)
    if named[1:] or vendors:
        demonstration.send(named[1:], vendors=vendors)
    demonstration.close(named[0])
    if as_json:
        demonstration.output.document(demonstration.document)
    return demonstration.code


class _Demonstration:
    """The three parts of the demo. `document` is what `--json` prints, and `code` the exit code of the first failed
    step.
    """

    def __init__(self, output: Output, options: Sequence[sabir.Option], named: Sequence[str]) -> None:
        self.output = output
        self.options = options
        self.named = {_provider_of(name): name for name in reversed(named)}
        self.messages: list[sabir.Message] = []
        self.held_by = self.held_in = ""
        self.code = Exit.OK
        self.document: dict[str, Any] = {"renderings": [], "sent": [], "failures": []}  # whatever JSON holds

    def hold(self, model: str, question: str) -> None:
        """Run the conversation, and print it: a question, an option call, its result, an answer."""
        self.output.show(Text(f"1  A conversation with {model}", style="bold"))
        self.messages = [sabir.system(SYSTEM), sabir.user(question)]
        self._say("system", SYSTEM)
        self._say("user", question)
        for option in self.options:
            self._say("option", f"{_signature(option)}: {option.description}")
        try:
            with open_adapter(model) as llm:
                self.held_by, self.held_in = llm.target.provider, llm.target.dialect
                self._converse(llm)
        except sabir.SabirError as error:
            self._fail(f"{model}: {explain(error)}", exit_of(error))
        self.document |= {"model": model, "messages": [message.model_dump(mode="json") for message in self.messages]}

    def _converse(self, llm: sabir.ModelAdapter) -> None:
        began = time.perf_counter()
        said: list[str] = []
        chosen = speak(llm, self.messages, self.output, options=self.options, settings=CHOOSE, write=said.append)
        self.messages += chosen.reply.messages
        if said:
            self._say("says", "".join(said))
        calls = chosen.reply.option_calls
        if not calls:
            self._usage(chosen)
            self._fail(f"{llm.target} answered without calling an option", Exit.FAILED)
            return
        for call in calls:
            self._say("call", f"{describe_call(call)}   chosen in {time.perf_counter() - began:.1f} s")
        answering = sabir.answer(chosen.reply, self.options) if needs_loop(self.options) else None
        results = asyncio.run(answering) if answering else sabir.answer_sync(chosen.reply, self.options)
        for result in results:
            self.messages.append(result)
            self._say("result", describe_result(result))
        self._answer(llm, self.messages, ANSWER)

    def _answer(self, llm: sabir.ModelAdapter, messages: list[sabir.Message], settings: sabir.Settings) -> None:
        self.output.begin(_label("answer"))
        folded = Folded(self.output.write, self.output.out.width)
        try:  # `folded` ends the line after its last word, so the text must not end it through `speak`
            elsewhere = Output(machine=True)
            spoken = speak(llm, messages, elsewhere, options=self.options, settings=settings, write=folded.add)
        finally:
            folded.end()
            self.output.end_line()
        messages += spoken.reply.messages
        self._usage(spoken)
        if spoken.failed or not spoken.reply.text:
            reason = spoken.reply.refusal or spoken.reply.finish_reason
            self._fail(f"{llm.target} gave no answer: {reason}", Exit.FAILED)

    def render(self, *, bodies: bool) -> None:
        """Render the history for every installed dialect, and print the losses and, with `bodies`, the request
        bodies.
        """
        self._title("2  The same history in other dialects (nothing is sent)")
        dialects, faults = spoken_dialects(sabir.providers())
        for fault in faults:
            self._fail(fault, Exit.PLUGIN)
        views = []
        for spoken in dialects:
            others = [name for name in spoken.other_providers if name != self.held_by]
            if spoken.dialect.name == self.held_in and spoken.speaker.provider == self.held_by and not others:
                continue
            also = f"{', '.join(others)} accept the dialect {spoken.dialect.name} too" if others else None
            view = self._view(self._model_of(spoken.speaker.full_name) or f"{spoken.speaker.full_name}:any", also)
            views.append(view)
            self.document["renderings"].append({**view.document(), "also_spoken_by": others})
        if self.output.machine:
            return
        if bodies:
            show(self.output.out, views)
            self.output.show("")
        sheet = Sheet("dialect and model", "would lose", plain={"would lose"})
        for view in views:
            sheet.add(printable(view.title), _lost(view))
        kinds = dict.fromkeys(loss.kind for view in views for loss in view.losses)
        self.output.show(sheet, *(Text(f"{kind}: {MEANINGS[kind]}", style="dim") for kind in kinds))

    def _view(self, name: str, note: str | None) -> View:
        try:
            rendering = open_adapter(name).render(self.messages, options=self.options)
            return View(name, rendering, note=note, messages=self.messages)
        except Exception as error:  # a plugin's own code: its errors stop no other plugin
            self.code = self.code or exit_of(error)
            return View(name, error=explain(error), note=note)

    def send(self, named: Sequence[str], *, vendors: bool) -> None:
        """Send the history without its last answer to the model strings in `named` and, with `vendors`, to every vendor
        whose key is set.
        """
        self._title("3  The same question to other vendors")
        asked = set(map(_provider_of, named))
        history = _without_answer(self.messages)
        missing = []
        for status in _one_of_each_name(sabir.providers()):
            wanted = first_missing(status.credentials)
            if status.name in asked or (vendors and has_key(status.credentials)):
                self._send_to(status.names[0] if status.names else status.name, history)
            elif vendors and wanted:
                missing.append(f"{status.name} {wanted}")
                self._sent(status.name, state="no key", key_variables=list(status.key_variables))
        if missing:
            self.output.show(Text("not sent, because the key is not set:", style="dim"))
            self.output.show(Padding(Columns(missing, padding=(0, 3)), (0, 0, 0, 2), style="yellow"))

    def _send_to(self, place: str, history: list[sabir.Message]) -> None:
        provider = _provider_of(place)
        name = self.named.get(provider) or self._model_of(place)
        if name is None:
            self._fail(f"{place}: no model is known for this vendor; choose one with -m {place}:MODEL", Exit.USAGE)
            self._sent(provider, state="no model")
            return
        messages = list(history)
        self._say("model", name)
        try:
            with open_adapter(name) as llm:
                self._answer(llm, messages, sabir.Settings(option_choice="none"))
            answers = messages[len(history) :]
            self._sent(provider, state="answered", model=name, text="".join(message.text for message in answers))
        except sabir.SabirError as error:
            self._fail(f"{name}: {explain(error)}", exit_of(error))
            self._sent(provider, state="failed", model=name, error=explain(error))

    def _model_of(self, place: str) -> str | None:
        """Return a model string for `provider[.dialect]`: with the model that -m names for this provider, else with a
        known model. None if no model is known.
        """
        named = self.named.get(_provider_of(place))
        known = [named.partition(":")[2]] if named else known_models(place)
        return f"{place}:{known[0]}" if known else None

    def close(self, model: str) -> None:
        """Print a note on the local model, if it was used, and a hint on further flags."""
        provider, _, name = model.partition(":")
        lines = [SMALL.format(model=name)] if provider == EMBEDDED and name in known_models(EMBEDDED) else []
        self.output.show("", *(Text(line, style="dim") for line in (*lines, MORE)))

    def _title(self, text: str) -> None:
        self.output.show("", Text(text, style="bold"))

    def _say(self, label: str, text: str) -> None:
        width = max(1, self.output.out.width - LABEL)
        first, *rest = Text(printable(text)).wrap(self.output.out, width, overflow="fold") or [Text()]
        self.output.show(Text.assemble(_label(label), first), *(Text.assemble(" " * LABEL, line) for line in rest))

    def _usage(self, spoken: Spoken) -> None:
        self._say("", spoken.summary())
        for loss in spoken.reply.losses:
            self._say("", f"loss: {describe_loss(loss, self.messages)}")
        self.document.setdefault("tokens_per_second", spoken.rate)

    def _sent(self, provider: str, **found: Any) -> None:  # whatever JSON holds
        self.document["sent"].append({"provider": provider, **found})

    def _fail(self, text: str, code: Exit) -> None:
        self.output.show(Text(printable(f"failed  {text}"), style="red"))
        self.document["failures"].append(text)
        self.code = self.code or code


class Folded:
    """Writes pieces of a text, folded between words at a width. The last word is written when it is complete."""

    def __init__(self, write: Callable[[str], None], width: int) -> None:
        self._write, self._width = write, width
        self._column = LABEL
        self._waiting = ""

    def add(self, piece: str) -> None:
        """Add a piece of the text."""
        *words, self._waiting = re.findall(r"\s*\S+|\s+$", self._waiting + piece) or [""]
        for word in words:
            self._put(word)

    def end(self) -> None:
        """Write the last word."""
        self._put(self._waiting)
        self._waiting = ""

    def _put(self, word: str) -> None:
        begun = word.lstrip()
        if "\n" in word or (begun != word and self._column + cell_len(word) > self._width):
            self._write("\n" + " " * LABEL + begun)
            self._column = LABEL + cell_len(begun)
        else:
            self._write(word)
            self._column += cell_len(word)


def _provider_of(model: str) -> str:
    return model.partition(":")[0].partition(".")[0]


def _one_of_each_name(statuses: Iterable[sabir.ProviderStatus]) -> Iterable[sabir.ProviderStatus]:
    """Return one status for each provider name: of several packages with one name, the package that the name without a
    dialect means, or else the first.
    """
    chosen: dict[str, sabir.ProviderStatus] = {}
    for status in statuses:
        if status.name not in chosen or status.means_bare_name:
            chosen[status.name] = status
    return chosen.values()


def _label(label: str) -> Text:
    return Text(f"{label:<{LABEL}}", style="cyan")


def _lost(view: View) -> Text:
    """Return the number of losses of each kind in one line; for a refused history, "all of it" and the error."""
    if view.error is not None:
        return Text(f"all of it: {printable(view.error)}", style="red")
    counts = Counter(loss.kind for loss in view.losses)
    if not counts:
        return Text("none", style="dim")
    return Text(", ").join(Text(f"{count} {kind}", style=LOSS_STYLES[kind]) for kind, count in counts.items())


def _signature(option: sabir.Option) -> str:
    properties = option.parameters.get("properties", {})
    names = (f"{name}: {schema.get('type', 'any')}" for name, schema in properties.items())
    return f"{option.name}({', '.join(names)})"


def _without_answer(messages: Sequence[sabir.Message]) -> list[sabir.Message]:
    """Return the history up to its last option result or question, whichever is later."""
    asked = (
        index for index, message in enumerate(messages) if message.kind == "option_result" or message.policy == "user"
    )
    return list(messages[: max(asked, default=-1) + 1])


def time_in(city: str) -> str:
    """The current time and date in a city."""
    now = datetime.now(ZoneInfo(find_zone(city)))
    return f"{now:%H:%M on %A}, {now.day} {now:%B}"  # without the year, which a small model repeats wrongly


def find_zone(city: str) -> str:
    """Return the name of the time zone for a city, or for the name of a zone. Raises LookupError if there is none."""
    zones = _zones()
    name = _plain(city)
    for candidate in (name, name.partition(",")[0].strip()):
        if candidate in zones:
            return zones[candidate]
    raise LookupError(f"no time zone is named after {city!r}; name a larger city, or a zone such as Europe/Berlin")


@functools.cache
def _zones() -> dict[str, str]:
    """Return a mapping: city or zone name, in lower case without accents → zone. Zones with a continent in their name
    are preferred to old aliases.
    """
    found: dict[str, str] = {}
    for zone in sorted(available_timezones(), key=lambda zone: ("/" not in zone, zone)):
        found.setdefault(_plain(zone.rpartition("/")[2]), zone)
        found.setdefault(_plain(zone), zone)
    return found


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.casefold().replace("_", " ")).strip()
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
