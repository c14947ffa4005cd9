"""Templates: a sandboxed jinja2 environment, in which content is never executed as a template.

    content + template ──render──▶ text           the same content gives the same text, byte for byte

A section begins with a line such as `## Context`, with one of HEADINGS. The filter `text` puts a backslash before a
line of content that looks like a heading, so that content cannot change the structure of the rendered text. An
undefined variable raises TemplateFailed, which names the template and the variable.
"""

import json
import re
from functools import lru_cache
from typing import Any

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    PackageLoader,
    StrictUndefined,
    Template,
    TemplateError,
    Undefined,
    UndefinedError,
)
from jinja2.exceptions import TemplateSyntaxError
from sabir.authoring import one_line

from sabir_roles.errors import TemplateFailed
from sabir_roles.template_limits import LimitedEnvironment, charge, charge_value, limit_costs, text_size

HEADINGS = ("Guidance", "Instruction", "Context", "Tools", "Response schema", "Response format", "Time")
"""The headings of the sections in the templates of sabir_roles."""

_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""The characters that end a line, in Unicode and in Python."""
_HEADING_LIKE = re.compile(rf"(^|[{_ENDS}])(\\*## (?:{'|'.join(HEADINGS)})[ \t]*(?=$|[{_ENDS}]))")
_FILE_NAME = re.compile(r"[\w./-]+\.(?:jinja2?|j2)")
_HIDDEN_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
"""Line ends that JSON does not require to be escaped → their escapes."""


def as_text(content: object) -> str:
    """Return a value of content as text. Templates use this function as the filter `text`.

    A text is returned with a backslash before each line that looks like a heading; a list of one text is treated as
    this text. None becomes "", and any other value JSON.
    """
    if content is None:
        return ""
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], str):
        content = content[0]
    if isinstance(content, str):
        return _HEADING_LIKE.sub(r"\1\\\2", content)
    return as_json(content)


def as_json(content: object) -> str:
    """Return a value of content as JSON text, indented by two spaces. Templates use this function as the filter
    `json`.
    """
    return json.dumps(content, ensure_ascii=False, indent=2).translate(_HIDDEN_ENDS)


def _charge_printed(printed: object) -> object:
    """Charge the size of a value that a template prints, and return what is printed: str() of lists and mappings, other
    values unchanged.

    Raises TypeError for a value that has no useful text, such as a method or a generator.
    """
    if isinstance(printed, str):
        return charge_value(printed)
    if printed is None or isinstance(printed, int | float | Undefined):
        return printed
    if isinstance(printed, list | tuple | dict):
        charge(text_size(printed))
        return str(printed)
    raise TypeError(f"a value of type {type(printed).__name__} has no text; call it, or make it a list")


def environment(loader: BaseLoader | None = None) -> LimitedEnvironment:
    """Return a new jinja2 environment with the package's rules, to create Templates for messages.

    Templates are looked up in `loader` first, then among the package's own. The filter `text` prints a value of content
    as text, and `json` prints it as JSON. Templates are sandboxed and have no random functions. Rendering a message
    with a template of this environment is limited to about 5 seconds, 32,000,000 characters and items, and 1,000,000
    loop passes and macro calls; above a limit, TemplateFailed is raised.

    >>> import sabir_roles
    >>> template = sabir_roles.environment().from_string("{{ system_message | text }} It is {{ weekday }}.")
    >>> sabir_roles.System.create("Be brief.", template=template, weekday="Monday").text
    'Be brief. It is Monday.'
    """
    own = PackageLoader("sabir_roles")
    sandbox = LimitedEnvironment(
        loader=ChoiceLoader([loader, own]) if loader else own,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,
        finalize=_charge_printed,
    )
    sandbox.filters |= {"text": as_text, "json": as_json}
    sandbox.filters.pop("random")
    sandbox.globals.pop("lipsum")
    sandbox.limit_filters()
    return sandbox


_ENVIRONMENT = environment()


def check_template(template: object) -> None:
    """Check a template. Raises TemplateFailed unless it is None, a compiled Template, the file name of a template
    of sabir_roles, or a source that compiles.
    """
    if isinstance(template, str):
        _compile(template)
    elif not isinstance(template, Template | None):
        kind = type(template).__name__
        expected = "pass a jinja2 source, the file name of a template of sabir_roles, or a jinja2 Template"
        raise TemplateFailed(f"a value of type {kind} is not a template; {expected}")


@lru_cache(maxsize=256)
def _compile(source: str) -> Template:
    """Return the compiled template for a source or for the file name of a template of sabir_roles.

    Raises TemplateFailed for an unknown file name, and for a source that does not compile.
    """
    own = _list_own_templates()
    if source in own:
        return _ENVIRONMENT.get_template(source)
    if _FILE_NAME.fullmatch(source):
        remedy = "or pass the text of a template, or a Template from sabir_roles.environment(loader)"
        raise TemplateFailed(f"there is no template {_quoted(source)}; use one of {', '.join(sorted(own))}, {remedy}")
    try:
        return _ENVIRONMENT.from_string(source)
    except TemplateSyntaxError as error:
        reason = f"line {error.lineno}: {error.message}"
    except (TemplateError, RecursionError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
    raise TemplateFailed(one_line(f"the template {_quoted(source)} cannot be compiled: {reason}; correct its source"))


@lru_cache(maxsize=1)
def _list_own_templates() -> frozenset[str]:
    return frozenset(_ENVIRONMENT.list_templates(extensions=["jinja2"]))


def render(template: str | Template, variables: dict[str, Any]) -> str:
    """Return the text of a template with these variables. Raises TemplateFailed if the template does not compile,
    fails, or exceeds a limit.
    """
    compiled = _compile(template) if isinstance(template, str) else template
    name = _quoted(template if isinstance(template, str) else template.name or "passed as an object")
    try:
        with limit_costs():
            return compiled.render(variables)
    except UndefinedError as error:
        known = ", ".join(sorted(variables))
        raise TemplateFailed(
            one_line(f"the template {name} failed: {error.message}; use one of the variables {known}")
        ) from None
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise TemplateFailed(
            one_line(f"the template {name} failed: {reason}; correct the template or the content")
        ) from error


def _quoted(source: str) -> str:
    return ascii(one_line(source, 60))
