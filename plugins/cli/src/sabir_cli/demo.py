"""`sabir demo`: hold one conversation with a real model, then convert it for every other dialect and vendor.

    1  question ──▶ model ──call──▶ option ──result──▶ model ──▶ answer, as it arrives
    2  this history ──render──▶ each installed dialect: the losses, and with --bodies the request bodies
    3  this history ──send──▶ each vendor named with -m; with --vendors, all vendors whose key is set

Without flags, the output fits a screen of 80 columns and 24 lines.

Without --vendors, only the models named with -m, by default one model, get requests. Nothing is scripted: another
question leads to another call, result and answer. A failing step prints one line, and the demonstration continues.
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

from sabir_cli.conversation import TimedReply, describe_call, describe_result, needs_loop, speak
from sabir_cli.exits import Exit
from sabir_cli.facts import open_adapter
from sabir_cli.failures import exit_of, explain
from sabir_cli.inputs import EMBEDDED, JSONFlag, OptionFlags, choose_model, known_models, load_options
from sabir_cli.losses import describe_loss
from sabir_cli.output import LOSS_STYLES, Output
from sabir_cli.providers import first_missing, has_key, spoken_dialects
from sabir_cli.record_table import RecordTable
from sabir_cli.render import View, show

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
MORE = "More: --bodies (each request), --vendors (all vendors), --json | sabir inspect -"
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
    vendors: Annotated[bool, Parameter(negative="", help="Send the history to every vendor whose key is set.")] = False,
    bodies: Annotated[bool, Parameter(negative="", help="Show each request body, and explain each loss.")] = False,
    option: OptionFlags = None,
    as_json: JSONFlag = False,
) -> int:
    """Let a real model call a function, and show how other vendors' APIs accept the conversation.

    Without -m, $SABIR_MODEL or `sabir config`, the demo uses the local model,
    which needs no key and, once downloaded, no network.
    """
    options = load_options(option) or (sabir.option(time_in),)
    named = list(model or [choose_model(None)])
    demonstration = _Demonstration(Output(machine=as_json), options, named)
    demonstration.converse(named[0], question)
    demonstration.render(bodies=bodies)
    if named[1:] or vendors:
        demonstration.send(named[1:], vendors=vendors)
    demonstration.print_hints(named[0])
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
        self.provider = self.dialect = ""
        self.code = Exit.OK
        self.document: dict[str, Any] = {"renderings": [], "sent": [], "failures": []}  # any JSON

    def converse(self, model: str, question: str) -> None:
        """Run the conversation, and print it: a question, an option call, its result, an answer."""
        self.output.show(Text(f"1  A conversation with {model}", style="bold"))
        self.messages = [sabir.system(SYSTEM), sabir.user(question)]
        self._print_labelled("system", SYSTEM)
        self._print_labelled("user", question)
        for option in self.options:
            self._print_labelled("option", f"{_signature(option)}: {option.description}")
        try:
            with open_adapter(model) as llm:
                self.provider, self.dialect = llm.target.provider, llm.target.dialect
                self._run_steps(llm)
        except sabir.SabirError as error:
            self._record_failure(f"{model}: {explain(error)}", exit_of(error))
        self.document |= {"model": model, "messages": [message.model_dump(mode="json") for message in self.messages]}

    def _run_steps(self, llm: sabir.ModelAdapter) -> None:
        start = time.perf_counter()
        pieces: list[str] = []
        timed = speak(llm, self.messages, self.output, options=self.options, settings=CHOOSE, write=pieces.append)
        self.messages += timed.reply.messages
        if pieces:
            self._print_labelled("says", "".join(pieces))
        calls = timed.reply.option_calls
        if not calls:
            self._print_usage(timed)
            self._record_failure(f"{llm.target} answered without calling an option", Exit.FAILED)
            return
        for call in calls:
            self._print_labelled("call", f"{describe_call(call)}   chosen in {time.perf_counter() - start:.1f} s")
        answering = sabir.answer(timed.reply, self.options) if needs_loop(self.options) else None
        results = asyncio.run(answering) if answering else sabir.answer_sync(timed.reply, self.options)
        for result in results:
            self.messages.append(result)
            self._print_labelled("result", describe_result(result))
        self._print_answer(llm, self.messages, ANSWER)

    def _print_answer(self, llm: sabir.ModelAdapter, messages: list[sabir.Message], settings: sabir.Settings) -> None:
        self.output.begin(_label("answer"))
        folded = FoldedWriter(self.output.write, self.output.out.width)
        try:
            silent = Output(machine=True)  # `speak` would end the line before `folded` writes the last word
            timed = speak(llm, messages, silent, options=self.options, settings=settings, write=folded.add)
        finally:
            folded.end()
            self.output.end_line()
        messages += timed.reply.messages
        self._print_usage(timed)
        if timed.failed or not timed.reply.text:
            reason = timed.reply.refusal or timed.reply.finish_reason
            self._record_failure(f"{llm.target} gave no answer: {reason}", Exit.FAILED)

    def render(self, *, bodies: bool) -> None:
        """Render the history for every installed dialect, and print the losses and, with `bodies`, the request
        bodies.
        """
        self._print_title("2  The same history in other dialects (nothing is sent)")
        dialects, faults = spoken_dialects(sabir.providers())
        for fault in faults:
            self._record_failure(fault, Exit.PLUGIN)
        views = []
        for spoken in dialects:
            others = [name for name in spoken.other_providers if name != self.provider]
            if spoken.dialect.name == self.dialect and spoken.speaker.provider == self.provider and not others:
                continue
            also = f"{', '.join(others)} accept the dialect {spoken.dialect.name} too" if others else None
            speaker = spoken.speaker.full_name
            view = self._render_view(self._choose_model(speaker) or f"{speaker}:any", also)
            views.append(view)
            self.document["renderings"].append({**view.document(), "also_spoken_by": others})
        if self.output.machine:
            return
        if bodies:
            show(self.output.out, views)
            self.output.show("")
        table = RecordTable("dialect and model", "would lose", plain={"would lose"})
        for view in views:
            table.add(printable(view.title), _losses_cell(view))
        kinds = dict.fromkeys(loss.kind for view in views for loss in view.losses)
        self.output.show(table, *(Text(f"{kind}: {MEANINGS[kind]}", style="dim") for kind in kinds))

    def _render_view(self, name: str, note: str | None) -> View:
        try:
            rendering = open_adapter(name).render(self.messages, options=self.options)
            return View(name, rendering, note=note, messages=self.messages)
        except Exception as error:  # any error of a plugin's code; the other plugins are still shown
            self.code = self.code or exit_of(error)
            return View(name, error=explain(error), note=note)

    def send(self, named: Sequence[str], *, vendors: bool) -> None:
        """Send the history without its last answer to the installed providers of the model strings in `named` and, with
        `vendors`, to every vendor whose key is set. The model is the first that -m names for the provider, or else
        the first known model of the provider.
        """
        self._print_title("3  The same question to other vendors")
        named_providers = set(map(_provider_of, named))
        history = _without_answer(self.messages)
        missing = []
        for status in _one_of_each_name(sabir.providers()):
            wanted = first_missing(status.credentials)
            if status.name in named_providers or (vendors and has_key(status.credentials)):
                self._send_to(status.names[0] if status.names else status.name, history)
            elif vendors and wanted:
                missing.append(f"{status.name} {wanted}")
                self._record_sent(status.name, state="no key", key_variables=list(status.key_variables))
        if missing:
            self.output.show(Text("not sent, because the key is not set:", style="dim"))
            self.output.show(Padding(Columns(missing, padding=(0, 3)), (0, 0, 0, 2), style="yellow"))

    def _send_to(self, speaker: str, history: list[sabir.Message]) -> None:
        provider = _provider_of(speaker)
        name = self.named.get(provider) or self._choose_model(speaker)
        if name is None:
            problem = "no model is known for this vendor"
            self._record_failure(f"{speaker}: {problem}; choose one with -m {speaker}:MODEL", Exit.USAGE)
            self._record_sent(provider, state="no model")
            return
        messages = list(history)
        self._print_labelled("model", name)
        try:
            with open_adapter(name) as llm:
                self._print_answer(llm, messages, sabir.Settings(option_choice="none"))
            answers = messages[len(history) :]
            self._record_sent(provider, state="answered", model=name, text="".join(message.text for message in answers))
        except sabir.SabirError as error:
            self._record_failure(f"{name}: {explain(error)}", exit_of(error))
            self._record_sent(provider, state="failed", model=name, error=explain(error))

    def _choose_model(self, speaker: str) -> str | None:
        """Return a model string for `provider[.dialect]`: with the model that -m names for this provider, else with a
        known model. None if no model is known.
        """
        named = self.named.get(_provider_of(speaker))
        known = [named.partition(":")[2]] if named else known_models(speaker)
        return f"{speaker}:{known[0]}" if known else None

    def print_hints(self, model: str) -> None:
        """Print a note on the local model, if it was used, and hints on further flags and on `sabir inspect`."""
        provider, _, name = model.partition(":")
        lines = [SMALL.format(model=name)] if provider == EMBEDDED and name in known_models(EMBEDDED) else []
        self.output.show("", *(Text(line, style="dim") for line in (*lines, MORE)))

    def _print_title(self, text: str) -> None:
        self.output.show("", Text(text, style="bold"))

    def _print_labelled(self, label: str, text: str) -> None:
        width = max(1, self.output.out.width - LABEL)
        first, *further = Text(printable(text)).wrap(self.output.out, width, overflow="fold") or [Text()]
        self.output.show(Text.assemble(_label(label), first), *(Text.assemble(" " * LABEL, line) for line in further))

    def _print_usage(self, timed: TimedReply) -> None:
        self._print_labelled("", timed.summary())
        for loss in timed.reply.losses:
            self._print_labelled("", f"loss: {describe_loss(loss, self.messages)}")
        self.document.setdefault("tokens_per_second", timed.rate)

    def _record_sent(self, provider: str, **fields: Any) -> None:  # any JSON
        self.document["sent"].append({"provider": provider, **fields})

    def _record_failure(self, text: str, code: Exit) -> None:
        self.output.show(Text(printable(f"failed  {text}"), style="red"))
        self.document["failures"].append(text)
        self.code = self.code or code


class FoldedWriter:
    """Writes pieces of a text, folded between words at a width. The last word is written when it is complete."""

    def __init__(self, write: Callable[[str], None], width: int) -> None:
        self._write, self._width = write, width
        self._column = LABEL
        self._last_word = ""

    def add(self, piece: str) -> None:
        """Add a piece of the text."""
        *words, self._last_word = re.findall(r"\s*\S+|\s+$", self._last_word + piece) or [""]
        for word in words:
            self._write_word(word)

    def end(self) -> None:
        """Write the last word."""
        self._write_word(self._last_word)
        self._last_word = ""

    def _write_word(self, word: str) -> None:
        stripped = word.lstrip()
        if "\n" in word or (stripped != word and self._column + cell_len(word) > self._width):
            self._write("\n" + " " * LABEL + stripped)
            self._column = LABEL + cell_len(stripped)
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


def _losses_cell(view: View) -> Text:
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
    ends = (
        index for index, message in enumerate(messages) if message.kind == "option_result" or message.policy == "user"
    )
    return list(messages[: max(ends, default=-1) + 1])


def time_in(city: str) -> str:
    """The current time and date in a city."""
    now = datetime.now(ZoneInfo(find_zone(city)))
    return f"{now:%H:%M on %A}, {now.day} {now:%B}"  # without the year, which a small model repeats wrongly


def find_zone(city: str) -> str:
    """Return the name of the time zone for a city, or for the name of a zone. Raises LookupError if there is none."""
    zones = _zones()
    name = _without_accents(city)
    for candidate in (name, name.partition(",")[0].strip()):
        if candidate in zones:
            return zones[candidate]
    raise LookupError(f"no time zone is named after {city!r}; name a larger city, or a zone such as Europe/Berlin")


@functools.cache
def _zones() -> dict[str, str]:
    """Return a mapping: city or zone name, in lower case without accents → zone. Zones with a continent in their name
    are preferred to old aliases.
    """
    zones: dict[str, str] = {}
    for zone in sorted(available_timezones(), key=lambda zone: ("/" not in zone, zone)):
        zones.setdefault(_without_accents(zone.rpartition("/")[2]), zone)
        zones.setdefault(_without_accents(zone), zone)
    return zones


def _without_accents(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.casefold().replace("_", " ")).strip()
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
