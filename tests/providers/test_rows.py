"""Law 13 at every row: what a target cannot take is a loss, so a request contains each value that no loss reports.

    row × dialect × prefix of models × (setting | choice | format | content) ──render──▶ in the body, or in the losses

The tests put a value that occurs nowhere else into one place and search the body for it. They do not read the rows,
except that what an entry calls ignored or refused must be missing from the body.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import sabir
from sabir.authoring import Row
from sabir.calling.adapter import ModelAdapter
from sabir.contract.dialect import Rendering
from sabir.options.option import Option

from tests.rules import check_each

ROWS = [*Row.load_all_packaged("sabir_openai").values(), *Row.load_all_packaged("sabir_anthropic").values()]
MARK = "s3nt1n3l"
PICTURE = f"data:image/png;base64,{MARK}AAAA"
LINK = f'":"https://{MARK}'
"""A URL as the value of a field; a placeholder has it within its text."""
OPTION = Option.from_schema(MARK, "", {"type": "object", "properties": {"city": {"type": "string"}}})
ANY, SCHEMA = {"type": "object"}, {"type": "object", "properties": {MARK: {"type": "string"}}}


class Probe(NamedTuple):
    """One value in one place of a request: the feature that it has, how to ask for it, and how the body shows it."""

    feature: str
    path: str
    """The beginning of the path of its loss."""
    marks: tuple[str, ...]
    """Texts of which the body contains one if the value is sent."""
    messages: Any = "Hello"
    settings: Mapping[str, Any] = {}
    options: tuple[Option, ...] = ()


def _setting(name: str, value: Any, *marks: str) -> Probe:
    return Probe(name, f"settings.{name}", marks or (json.dumps(value),), settings={name: value})


def _choice(feature: str, value: str, *marks: str) -> Probe:
    return Probe(feature, "settings.option_choice", marks, settings={"option_choice": value}, options=(OPTION,))


def _media(feature: str, part: Any, *marks: str) -> Probe:
    return Probe(feature, "parts[1]", marks, messages=[sabir.user("Look:", part)])


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
PROBES = (
    _setting("max_output_tokens", 7919),
    _setting("temperature", 0.6173),
    _setting("top_p", 0.7351),
    _setting("stop", (MARK,), MARK),
    _setting("seed", 104729),
    *(_setting("reasoning_effort", effort, f'"{effort}"') for effort in EFFORTS[1:]),
    _setting("reasoning_effort", "none", '"none"', '"thinking":{"type":"disabled"}'),
    Probe("parallel_options", "settings.parallel_options",
          ('"parallel_tool_calls":false', '"disable_parallel_tool_use":true'),
          settings={"parallel_options": False}, options=(OPTION,)),
    _choice("option_choice.auto", "auto", '"tool_choice":"auto"', '"tool_choice":{"type":"auto"'),
    _choice("option_choice.none", "none", '"tool_choice":"none"', '"tool_choice":{"type":"none"'),
    _choice("option_choice.required", "required", '"tool_choice":"required"', '"tool_choice":{"type":"any"'),
    _choice("option_choice.named", MARK, '"tool_choice":{'),
    Probe("options", "options", (MARK,), options=(OPTION,)),
    Probe("response_format.schema", "settings.response_format", (MARK,), settings={"response_format": SCHEMA}),
    Probe("response_format.object", "settings.response_format", ('"json_object"', '"json_schema"'),
          messages="Answer in JSON.", settings={"response_format": ANY}),
    _media("image.data", sabir.image(PICTURE), MARK),
    _media("image.url", sabir.image(f"https://{MARK}.example/a.png"), LINK),
    _media("audio.data", sabir.audio(f"data:audio/wav;base64,{MARK}AAAA"), MARK),
    _media("document.data", sabir.document(f"data:application/pdf;base64,{MARK}AAAA"), MARK),
    _media("document.url", sabir.document(f"https://{MARK}.example/a.pdf"), LINK),
    _media("video.url", sabir.video(f"https://{MARK}.example/a.mp4"), LINK),
    _media("video.data", sabir.video(f"data:video/mp4;base64,{MARK}AAAA"), MARK),
)  # fmt: skip


class Place(NamedTuple):
    """A row, one of its dialects, and a model that has a prefix of the row."""

    row: Row
    dialect: str
    model: str

    def __str__(self) -> str:
        return f"{self.row.name}.{self.dialect}:{self.model}"

    @property
    def adapter(self) -> ModelAdapter:
        return sabir.adapter(str(self), api_key="k")

    def status(self, feature: str) -> str:
        """The column in which the entries for this model list the feature, that of the longest prefix first."""
        entries = [
            (max(len(prefix) for prefix in entry.models if self.model.startswith(prefix)), entry)
            for entry in self.row.entries
            if any(self.model.startswith(prefix) for prefix in entry.models)
            and (not entry.dialects or self.dialect in entry.dialects)
        ]
        for _, entry in sorted(entries, key=lambda pair: -pair[0]):
            for column in ("refuses", "ignores", "accepts"):
                if feature in getattr(entry, column):
                    return column
        return ""


PLACES = [
    Place(row, dialect, f"{prefix}{MARK}")
    for row in ROWS
    for dialect in row.dialects
    for prefix in sorted({prefix for entry in row.entries for prefix in entry.models} | {""})
]


def rendered(place: Place, probe: Probe) -> Rendering:
    return place.adapter.render(probe.messages, options=probe.options, settings=sabir.Settings(**probe.settings))


def faults(place: Place) -> Iterator[str]:
    """Every probe that is neither in the body nor in the losses, or that is sent although an entry says not to."""
    for probe in PROBES:
        rendering = rendered(place, probe)
        body = json.dumps(json.loads(rendering.body_bytes) | {"model": ""}, separators=(",", ":"))
        is_sent = any(mark in body for mark in probe.marks)
        losses = [loss for loss in rendering.losses if loss.path.startswith(probe.path)]
        if not is_sent and not losses:
            yield f"{place}: {probe.feature} is neither sent nor lost"
        if is_sent and place.status(probe.feature) in ("refuses", "ignores"):
            yield f"{place}: {probe.feature} is sent, although the row {place.status(probe.feature)} it"


def test_a_row_sends_or_loses_each_value() -> None:
    check_each(PLACES, faults, "report it as a loss, or send it")
