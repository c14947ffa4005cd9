"""The pages of the server, and the static file: the views in their documents."""

from collections.abc import Mapping

import sabir
from sabir.authoring import one_line

from sabir_cli.inspect.comparison import ModelOpener, RequestedComparison, compare, read_settings_query
from sabir_cli.inspect.conversation_page import conversation_view
from sabir_cli.inspect.elements import Markup, element, fragment
from sabir_cli.inspect.inspection import Inspection
from sabir_cli.inspect.page import document
from sabir_cli.inspect.renderings_page import renderings_view


def conversation_document(inspection: Inspection, page: int) -> str:
    """Return a page of the conversation view for the server."""
    view = conversation_view(inspection, page)
    return document(inspection.title, inspection.source, [("conversation", view)], current="conversation")


def renderings_document(
    inspection: Inspection,
    requested: RequestedComparison,
    query: Mapping[str, str],
    page: int,
    open_model: ModelOpener,
) -> str:
    """Return a page of the renderings view for the server. `query` are the settings of the form, which replace those
    of `requested`.
    """
    warning: Markup | None = None
    settings = requested.settings
    try:
        settings = read_settings_query(query).laid_over(settings)
    except (sabir.SabirError, ValueError) as error:
        warning = element("p", {"class": "refused", "role": "alert"}, one_line(str(error), 400))
    changed = RequestedComparison(requested.models, settings, query.get("strict") == "true")
    comparison = compare(inspection, changed, page, open_model)
    view = fragment(warning, renderings_view(inspection, comparison, query))
    return document(inspection.title, inspection.source, [("renderings", view)], current="renderings")


def static_document(inspection: Inspection, requested: RequestedComparison) -> str:
    """Return one self-contained file: all messages and, if models are requested, the first page of the renderings."""
    sections = [("conversation", conversation_view(inspection, None))]
    if requested.models:
        sections.append(("renderings", renderings_view(inspection, compare(inspection, requested), None)))
    return document(inspection.title, inspection.source, sections)
