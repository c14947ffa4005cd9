"""Writes the pages of the API before Sphinx reads the folder: docs/api/*.rst, which git ignores.

    MAIN      one page for each main object, with what belongs to it
    PACKAGES  one page for each package, with all its other public names

Names come from `__all__`, so each public name is on exactly one page. A name in MAIN that no package exports ends the
build, and so does a package with public names that PACKAGES lacks.
"""

import ast
import functools
import importlib
import inspect
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

from docstrings import rewritten
from public_names import PACKAGES, package_of, unlisted
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError, PycodeError
from sphinx.pycode import ModuleAnalyzer

MAIN = {
    "adapter": "sabir.adapter sabir.ModelAdapter",
    "Adapter": "sabir.Adapter",
    "Message": "sabir.Message sabir.user sabir.system sabir.assistant sabir.Origin",
    "Parts": (
        "sabir.TextPart sabir.MediaPart sabir.image sabir.audio sabir.video sabir.document sabir.ReasoningPart "
        "sabir.RefusalPart sabir.Citation sabir.OpaquePart sabir.UnknownPart"
    ),
    "option": "sabir.option sabir.Option sabir.ToolContext sabir.answer sabir.answer_sync sabir.unanswered",
    "Settings": "sabir.Settings sabir.ResponseFormat sabir.Bounds",
    "RetryPolicy": "sabir.RetryPolicy",
    "Rendering": "sabir.Rendering sabir.RenderingRefused",
    "Loss": "sabir.Loss",
    "Reply": "sabir.Reply sabir.Usage sabir.Alternative",
    "Stream events": (
        "sabir.ReplyStream sabir.SyncReplyStream sabir.ReplyStart sabir.BlockStart sabir.BlockDelta sabir.BlockEnd "
        "sabir.ReplyEnd sabir.StreamBroken"
    ),
    "fallback": "sabir.fallback sabir.FallbackAdapter sabir.FALLBACK_ON",
    "dialect": "sabir.dialect sabir.PureDialect sabir.DecodedHistory",
    "Conversation": "sabir_session.Conversation",
    "Answer": "sabir_session.Answer sabir_session.AnswerStream sabir_session.SyncAnswerStream",
    "evaluate": "sabir_session.evaluate sabir_session.evaluate_sync sabir_session.PromptResponse",
    "Budget": "sabir_session.Budget sabir_session.with_budget",
    "Stores": "sabir_session.SQLiteStore sabir_session.PostgresStore sabir_session.Store",
    "Policies": (
        "sabir_runtime.Policy sabir_runtime.llm_policy sabir_runtime.human_policy sabir_runtime.loop_policy "
        "sabir_runtime.branch"
    ),
    "Runners": (
        "sabir_runtime.InMemoryRunner sabir_runtime.durable.DurableRunner sabir_runtime.distributed.DistributedRunner"
    ),
    "ThreadClient": "sabir_actors.ThreadClient",
    "ScriptedAdapter": "sabir_testing.ScriptedAdapter",
}
"""Title → the objects of the page, in the menu's order."""

STOP_AT = "BaseModel, Frozen, StoredModel, BaseException, Exception, Generic, Protocol, object, str, int, tuple"
"""Members that are inherited from these classes are not shown."""
LONGEST = 200
"""Definitions of constants that are longer are not shown."""


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    app.connect("builder-inited", forget_overloads)
    app.connect("autodoc-skip-member", skip_internal)
    return {"parallel_read_safe": True}


def forget_overloads(app: Sphinx) -> None:
    """Show the signatures of `help()`, which name every argument, for functions with overloads, too."""
    roots = {package.partition(".")[0] for package in PACKAGES}
    for name in [each for each in sys.modules if each.partition(".")[0] in roots]:
        try:
            analyzer = ModuleAnalyzer.for_module(name)
            analyzer.analyze()
        except PycodeError:  # a module without source
            continue
        analyzer.overloads.clear()


def write_pages(app: Sphinx) -> None:
    """Write docs/api; files whose text is unchanged keep their time, so that Sphinx does not read them again."""
    folder = Path(app.srcdir) / "api"
    pages = dict(all_pages())
    folder.mkdir(exist_ok=True)
    for stale in folder.glob("*.rst"):
        if stale.name not in pages:
            stale.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def all_pages() -> Iterator[tuple[str, str]]:
    """File name → text, the index first."""
    main = {title: names.split() for title, names in MAIN.items()}
    public = {package: importlib.import_module(package).__all__ for package in PACKAGES}
    known = {f"{package}.{name}" for package, names in public.items() for name in names}
    if unknown := {name for names in main.values() for name in names} - known:
        raise ExtensionError(f"docs/_ext/api_pages.py: no package exports {', '.join(sorted(unknown))}")
    if missing := unlisted():
        raise ExtensionError(f"docs/_ext/public_names.py: PACKAGES lacks {', '.join(sorted(missing))}")
    placed = {id(resolve(name)) for names in main.values() for name in names}
    main_files = [f"{slug(title)}.rst" for title in main]
    yield "index.rst", index(main_files, [f"{package}.rst" for package in PACKAGES])
    for file, (title, names) in zip(main_files, main.items(), strict=True):
        yield file, page(title, "", names)
    for package, names in public.items():
        fresh = [name for name in names if id(getattr(importlib.import_module(package), name)) not in placed]
        placed |= {id(getattr(importlib.import_module(package), name)) for name in fresh}
        yield f"{package}.rst", page(package, f"Everything else in ``{package}``.", [f"{package}.{n}" for n in fresh])


def slug(title: str) -> str:
    """`Stream events` → `stream-events`; a class gets another name than the function, also where case is ignored."""
    return title.lower().replace(" ", "-") + ("-protocol" if title == "Adapter" else "")


def resolve(name: str) -> object:
    package, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(package), attribute)


def index(main_files: list[str], package_files: list[str]) -> str:
    def toctree(caption: str, files: list[str]) -> str:
        return f".. toctree::\n   :caption: {caption}\n\n" + "".join(f"   {file[:-4]}\n" for file in files)

    text = "Generated from the docstrings, with links to the source. The main objects come first.\n"
    return f"API\n===\n\n{text}\n{toctree('Main objects', main_files)}\n{toctree('By package', package_files)}"


def page(title: str, text: str, names: list[str]) -> str:
    """A page with a section for each object; the sections are the page's table of contents."""
    blocks = [directive(name) for name in names]
    if len(names) > 1:
        titles = [name.rpartition(".")[2] for name in names]
        blocks = [f"{each}\n{'-' * len(each)}\n\n{block}" for each, block in zip(titles, blocks, strict=True)]
    return "\n".join([f"{title}\n{'=' * len(title)}\n", f"{text}\n", *blocks])


def directive(name: str) -> str:
    """The autodoc directive for one object."""
    value = resolve(name)
    if typing.is_typeddict(value):
        return f".. autoclass:: {name}\n   :members:\n   :undoc-members:\n"
    if inspect.isclass(value):  # fields without a text of their own are in the signature and in the class's text
        bases = ":show-inheritance:" if issubclass(value, BaseException) else f":inherited-members: {STOP_AT}"
        return f".. autoclass:: {name}\n   :members:\n   {bases}\n"
    return f".. autofunction:: {name}\n" if inspect.isroutine(value) else constant(name, value)


def constant(name: str, value: object) -> str:
    """A constant or a type alias with the text below its definition; autodoc looks only where it is defined."""
    short = name.rpartition(".")[2]
    lines, definition = [""], ""
    for module in [each for each in sys.modules.values() if each.__name__.startswith("sabir") and "." in each.__name__]:
        if vars(module).get(short) is value and (texts := attribute_texts(module.__name__)) and short in texts:
            definition, text = texts[short]
            lines = rewritten(text, package_of(name))
            break
    shown = f"   :value: {definition}\n" if definition and len(definition) < LONGEST else ""
    return f".. py:data:: {name}\n{shown}\n" + "".join(f"   {line}\n" for line in lines)


@functools.cache
def attribute_texts(module: str) -> dict[str, tuple[str, str]]:
    """The names that a module assigns, each with its definition and the text below it."""
    body = ast.parse(inspect.getsource(sys.modules[module])).body
    texts = {}
    for node, following in zip(body, [*body[1:], ast.Pass()], strict=True):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and isinstance(targets[0], ast.Name):
            is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            text = inspect.cleandoc(str(following.value.value)) if is_text else ""
            texts[targets[0].id] = (" ".join(ast.unparse(node.value).split()), text)
    return texts


def skip_internal(app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Leave out the members of pydantic."""
    return True if name.startswith(("model_config", "model_post_init", "pydantic_")) else None
