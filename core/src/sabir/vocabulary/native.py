"""Calls of a vendor's own tools, and their results: parts that every program can read.

    vendor's block ──decode──▶ typed fields + `raw` ──┬─ to the same model or family ──▶ `raw`, unchanged
                                                      └─ to any other model ───────────▶ `as_text`, with a loss

The vendor ran the tool, so a native call never becomes an option call, and no program answers it.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from sabir.base.models import StoredModel
from sabir.base.shown import Arguments
from sabir.base.values import JSONObjectDocumentField, JSONView, ObjectView
from sabir.vocabulary.fields import NonEmpty, State, Text


class NativeReference(StoredModel):
    """A page, document or file that a vendor's own tool read or created.

    `url`, `title` and `file_id` (the vendor's id of a file) identify it, and `text` is the passage that the vendor
    reported. Each is None if the vendor did not report it.
    """

    url: Text | None = None
    title: Text | None = None
    text: Text | None = None
    file_id: Text | None = None

    @property
    def as_text(self) -> str:
        """The reference as text: title and URL (or file id) in one line, and the passage below."""
        names = [each for each in (self.title, self.url or self.file_id) if each]
        return "\n".join(filter(None, (" – ".join(names), self.text)))


class NativePart(StoredModel):
    """Base class of NativeCallPart and NativeResultPart."""

    tool: NonEmpty
    """The tool, by sabir's name: "web_search", "code_execution", "mcp_server", "web_fetch", "file_search". Another tool
    has the vendor's name.
    """
    pair_id: NonEmpty | None = None
    """The vendor's id of the call, which its result has too. None if a call and its result have no common id."""
    dialect: NonEmpty | None = None
    """The API format of `raw`. None for a part that no vendor created."""
    raw_json: State = Field(default=None, alias="raw")

    raw: ClassVar = JSONView(
        "raw_json", "The vendor's block, unchanged. None if the block is the `raw` of the call, or if there is none."
    )

    @model_validator(mode="after")
    def _check_dialect(self) -> "NativePart":
        if self.raw_json is not None and self.dialect is None:
            raise ValueError("a part with `raw` needs `dialect`, the name of the API format of the block")
        return self

    def __brief_args__(self) -> Arguments:
        """Yield the arguments of the short `repr`: all except the vendor's block."""
        return ((name, value) for name, value in super().__brief_args__() if name != "raw")


class NativeCallPart(NativePart):
    """A part in which a model calls a tool that the vendor runs, such as the vendor's own web search.

    `queries` are the searches, `url` is a page to read, `code` the code to run. For a tool of an MCP server, `server`
    is the server's name and `name` the tool's; `name` may also be the vendor's name of the action. `arguments` are all
    arguments as an object, if the vendor reports them in this way. Fields that the vendor did not report are empty.
    `raw` is the vendor's block. It is sent back to the origin of the message or to a model of its family; other models
    get the call as text.
    """

    kind: Literal["native_call"] = "native_call"
    queries: tuple[Text, ...] = ()
    url: Text | None = None
    code: Text | None = None
    server: Text | None = None
    name: Text | None = None
    arguments_json: JSONObjectDocumentField | None = Field(default=None, alias="arguments")

    arguments: ClassVar = ObjectView("arguments_json", "The arguments of the call. Empty if the vendor reported none.")

    @property
    def query(self) -> str | None:
        """The first of `queries`, or None."""
        return self.queries[0] if self.queries else None

    @property
    def pair(self) -> Literal["opens"] | None:
        """ "opens" if a result with the same `pair_id` follows, else None."""
        return None if self.pair_id is None else "opens"

    @property
    def as_text(self) -> str:
        """The call as text, which other models get."""
        what = " ".join(filter(None, (self.server, self.name)))
        head = f"[{self.tool}{': ' + what if what else ''}]"
        known = (*self.queries, *filter(None, (self.url, self.code)))
        return "\n".join((head, *(known or filter(None, (self.arguments_json or "",)))))


class NativeResultPart(NativePart):
    """A part with the result of a tool that the vendor ran. The NativeCallPart with the same `pair_id` is its call.

    `sources` are the pages or documents that a search found, `output` is the text that code printed or an MCP tool
    returned, and `files` are the files that code created. `error` is the tool's error, or None. `raw` is the vendor's
    block; None if the vendor reports call and result in one block, which is then the `raw` of the call.
    """

    kind: Literal["native_result"] = "native_result"
    sources: tuple[NativeReference, ...] = ()
    output: Text | None = None
    files: tuple[NativeReference, ...] = ()
    error: Text | None = None

    @property
    def pair(self) -> Literal["closes"] | None:
        """ "closes" if a call with the same `pair_id` comes before, else None."""
        return None if self.pair_id is None else "closes"

    @property
    def as_text(self) -> str:
        """The result as text, which other models get."""
        return "\n".join((f"[{self.tool} result]", *self._lines()))

    def _lines(self) -> Iterator[str]:
        if self.error:
            yield f"error: {self.error}"
        if self.output:
            yield self.output.rstrip("\n")
        yield from _list_references(self.sources)
        yield from (f"file: {each.as_text}" for each in self.files)


def _list_references(references: Iterable[NativeReference]) -> Iterator[str]:
    return (f"{number}. {each.as_text}" for number, each in enumerate(references, 1))
