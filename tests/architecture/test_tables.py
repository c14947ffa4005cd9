"""Every table over a closed vocabulary covers it, or names the words that it leaves out.

a new modality ──▶ `Modality` ──▶ this test lists, with their files, the tables that need a row or a decision
"""

import ast
import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import get_args

from sabir.authoring import WIRE_SETTINGS, FinishReason, Modality
from sabir.base.failures import LossKind
from sabir.vocabulary.history import KNOWN_KINDS
from sabir.vocabulary.messages import Kind, RoleHint

from tests.architecture.project import PACKAGES, ROOT, syntax_tree

VOCABULARIES: Mapping[str, frozenset[str]] = {
    "Modality": frozenset(get_args(Modality)),
    "LossKind": frozenset(get_args(LossKind)),
    "FinishReason": frozenset(get_args(FinishReason)),
    "Kind": frozenset(get_args(Kind)),
    "RoleHint": frozenset(get_args(RoleHint)),
    "kinds of parts": frozenset(KNOWN_KINDS),
    "settings of requests": frozenset(WIRE_SETTINGS),
}

LEFT_OUT: Mapping[str, str] = {
    "sabir.reading.fold._TEXT_PARTS": "media native_call native_result opaque",
    "sabir.reading.fold.ENDED_BY_ITSELF": "content_filter error length other paused",
    "sabir_actors.agents._ROLES": "tool",
    "sabir_anthropic.encode._MEDIA": "audio video",
    "sabir_anthropic.request.FIELDS": (
        "option_choice parallel_options prompt_cache reasoning_effort response_format seed"
    ),
    "sabir_calls.cache.cached._COMPLETE": "content_filter error length native_calls other paused",
    "sabir_cli.chat.answer_printer.ENDINGS": "native_calls option_calls other paused stop",
    "sabir_cli.conversation.FAILED_REASONS": "length option_calls other paused stop",
    "sabir_cli.render.STRICT": "relocated rewritten synthesized withheld",
    "sabir_google.request.FIELDS": "option_choice parallel_options prompt_cache reasoning_effort response_format",
    "sabir_google.settings.MEDIA_HINTS": "audio",
    "sabir_mcp.contents.MODALITIES": "document",
    "sabir_openai.chat_encode._MEDIA": "document",
    "sabir_testing.families.contract.OWN_PARTS": "media native_call native_result text",
    "sabir_testing.kit.request_contents._BLOCKS": "media reasoning refusal text",
    "sabir_testing.scripted.api._ASSISTANT_PARTS": "media native_call native_result text",
    "sabir_openai.chat_request.FIELDS": "option_choice parallel_options prompt_cache response_format",
    "sabir_openai.chat_request._SAMPLING": (
        "max_output_tokens option_choice parallel_options prompt_cache reasoning_effort response_format seed stop"
    ),
    "sabir_openai.responses_encode._MEDIA": "audio video",
    "sabir_openai.responses_request.FIELDS": (
        "option_choice parallel_options prompt_cache reasoning_effort response_format seed stop"
    ),
    "sabir_openai.responses_stream._TEXT_PARTS": "media native_call native_result opaque",
    "sabir_otel.contents.ROLES_BY_KIND": "parts unknown",
    "sabir_otel.conventions.SETTINGS": "option_choice parallel_options prompt_cache reasoning_effort response_format",
    "sabir_otel.conventions.FINISH_REASONS": "content_filter error length other paused stop",
}
"""Table → the words of its vocabulary that it leaves out on purpose."""


@cache
def gaps() -> Mapping[str, tuple[Path, set[str]]]:
    """Return the tables over a vocabulary: full name → file, and the words of the vocabulary that the table lacks."""
    return {
        f"{module}.{name}": (path, min((words - keys for words in VOCABULARIES.values() if keys <= words), key=len))
        for module, path in modules()
        for name, keys in tables(module, path)
        if any(keys <= words for words in VOCABULARIES.values())
    }


def modules() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for path in package.own_modules():
            name = ".".join(path.relative_to(package.source.parent).with_suffix("").parts)
            yield name.removesuffix(".__init__"), path


def tables(module: str, path: Path) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the mappings and sets of at least two texts that a module defines: name, texts."""
    for node in syntax_tree(path).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for name in (target.id for target in targets if isinstance(target, ast.Name)):
            table = getattr(importlib.import_module(module), name, None)
            if (
                isinstance(table, Mapping | frozenset)
                and len(table) >= 2
                and all(isinstance(key, str) for key in table)
            ):
                yield name, frozenset(table)


def test_tables_over_a_vocabulary_are_found() -> None:
    """Of each vocabulary, at least one: else the test below could not fail."""
    names = " ".join(gaps())
    for name in ("DEFAULT_MIMES", "LOSS_STYLES", "ENDED_BY_ITSELF", "_HINTED", "FIELDS"):
        assert name in names


def test_a_table_covers_its_vocabulary_or_names_what_it_leaves_out() -> None:
    faults = [
        f"{path.relative_to(ROOT)}: {name.rpartition('.')[2]} has no row for {', '.join(sorted(unexplained))}; "
        f"add it, or add it to LEFT_OUT in tests/architecture/test_tables.py"
        for name, (path, missing) in gaps().items()
        if (unexplained := missing - set(LEFT_OUT.get(name, "").split()))
    ]
    assert not faults, "\n".join(faults)


def test_what_a_table_leaves_out_is_missing() -> None:
    wrong = [
        name for name, words in LEFT_OUT.items() if name not in gaps() or not set(words.split()) <= gaps()[name][1]
    ]
    assert not wrong, f"LEFT_OUT names words that these tables have, or tables that do not exist: {wrong}"
