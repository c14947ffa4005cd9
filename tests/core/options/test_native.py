"""Native options: what they are, what is sent of them, and that credentials stay in the request."""

import pickle
from typing import Any

import pytest
import sabir
from sabir.authoring import NativeTool
from sabir.contract.dialect import Dialect
from sabir.contract.turns import Tables
from sabir.errors import OptionInvalid
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.models import ModelInfo
from sabir.vocabulary.settings import Target

TOKEN, HEADER = "token-7c41", "header-9e02"
SERVER = sabir.mcp_server(
    "https://mcp.example.org/sse?key=query-5d11", authorization=TOKEN, headers={"X-Key": HEADER}, allowed_tools=["ask"]
)


@sabir.option
def search(query: str) -> str:
    """Search."""
    return f"nothing about {query}"


@sabir.option
def weather(city: str) -> str:
    """Tell the weather."""
    return "rain"


def dialect(**native: NativeTool) -> Dialect:
    """A dialect that sends the names of its options, and the fields of native options."""
    return Dialect(
        name="acme.chat",
        tables=Tables(native=native),
        encode_turn=lambda turn, scope, losses: [{"text": entry.message.text} for entry in turn.entries],
        encode_request=lambda scope: {
            "names": [scope.option_names[each.name] for each in scope.options], **scope.native,
            "choice": scope.native_choice or scope.setting("option_choice"),
        },
        decode=lambda body, scope: pytest.fail("nothing is decoded here"),
        path=lambda target: "/chat",
    )  # fmt: skip


def render(*options: Any, settings: sabir.Settings | None = None, accepts: Any = None, **native: NativeTool) -> Any:
    target = Target(provider="acme", dialect="acme.chat", model="m")
    info = ModelInfo(prefix="", accepts=accepts)
    renderer = Renderer(dialect(**native), target, model_info=info)
    return renderer.render([sabir.user("?")], sabir.Option.all_of(options), settings)


FULL = NativeTool(
    lambda option, own, scope: {"tools": [{"search": [*option.domains], "most": option.max_uses, **own}]},
    frozenset({"domains"}),
    lambda option: {"use": option.kind},
)


def test_a_native_option_becomes_the_vendors_tool_and_a_field_that_it_lacks_is_a_loss() -> None:
    option = sabir.web_search(domains=["a.org"], max_uses=3, vendor={"acme": {"deep": True}})
    rendering = render(option, weather, web_search=FULL)

    assert rendering.body["tools"] == [{"search": ["a.org"], "most": None, "deep": True}]
    assert rendering.body["names"] == ["weather"]
    assert [(loss.kind, loss.path) for loss in rendering.losses] == [("dropped", "options[0].max_uses")]


def test_the_parameters_of_two_tools_are_joined() -> None:
    tool = NativeTool(lambda option, own, scope: {"custom": {"tools": [option.kind]}})
    rendering = render(sabir.web_search(), sabir.code_execution(), web_search=tool, code_execution=tool)

    assert rendering.body["custom"] == {"tools": ["web_search", "code_execution"]}


def test_a_tool_that_the_vendor_lacks_is_a_loss_or_the_function_given_for_it() -> None:
    lost = render(weather, sabir.web_search())
    assert [(loss.kind, loss.path) for loss in lost.losses] == [("dropped", "options[1]")]

    replaced = render(sabir.web_search(otherwise=search), weather)
    assert (list(replaced.body["names"]), replaced.losses) == (["search", "weather"], ())


def test_a_tool_that_no_source_documents_is_not_sent() -> None:
    """A gateway's row lists what the gateway accepts, and most gateways refuse tools that they do not know."""
    lost = render(sabir.web_search(), accepts=("temperature",), web_search=FULL)
    sent = render(sabir.web_search(), accepts=("native.web_search",), web_search=FULL)

    assert "tools" not in lost.body and lost.losses
    assert sent.body["tools"] and not sent.losses


def test_a_tool_that_cannot_be_sent_now_is_a_loss_with_its_reason() -> None:
    rendering = render(sabir.web_search(), web_search=NativeTool(lambda option, own, scope: "not on Sundays"))

    assert [(loss.path, loss.reason) for loss in rendering.losses] == [("options[0]", "not on Sundays")]


@pytest.mark.parametrize(
    ("option", "native", "choice", "lost"),
    [
        (sabir.web_search(), {"web_search": FULL}, {"use": "web_search"}, []),
        (sabir.web_search(), {"web_search": NativeTool(FULL.encode)}, None, ["settings.option_choice"]),
        (sabir.web_search(), {}, None, ["settings.option_choice", "options[0]"]),
        (sabir.web_search(otherwise=search), {}, "search", []),
    ],
)
def test_a_choice_names_a_native_option(option: Any, native: Any, choice: Any, lost: list[str]) -> None:
    rendering = render(option, settings=sabir.Settings(option_choice="web_search"), **native)

    assert (rendering.body["choice"], [loss.path for loss in rendering.losses]) == (choice, lost)


def test_losses_name_the_places_of_functions_among_all_options() -> None:
    """A dialect numbers the functions only; the caller knows the places of all options."""

    def encode_request(scope: Any) -> Any:
        for index in range(len(scope.options)):
            scope.losses.add("downgraded", "poorer", path=f"options[{index}].parameters")
            scope.unchecked.append(f"options[{index}].strict")
        return {}

    changed = Renderer(
        Dialect(
            name="acme.chat", tables=Tables(native={"web_search": FULL}), path=lambda target: "/",
            encode_turn=lambda turn, scope, losses: ["?"], encode_request=encode_request,
            decode=lambda body, scope: pytest.fail("nothing is decoded here"),
        ),
        Target(provider="acme", dialect="acme.chat", model="m"),
        model_info=ModelInfo(prefix="", accepts=("native.web_search",)),
    )  # fmt: skip
    rendering = changed.render([sabir.user("?")], sabir.Option.all_of([search, sabir.web_search(), weather]))

    assert [loss.path for loss in rendering.losses] == ["options[0].parameters", "options[2].parameters"]
    assert rendering.unchecked == ("options[0].strict", "options[2].strict")


def test_credentials_are_in_no_repr_dump_loss_or_error() -> None:
    """They are sent, and equal options have equal credentials, so that no cached request has another's."""
    texts = [repr(SERVER), str(SERVER), SERVER.model_dump_json(), repr([SERVER])]
    texts += [str(loss) for loss in render(SERVER).losses]
    with pytest.raises(OptionInvalid) as refused:
        sabir.mcp_server("https://mcp.example.org", authorization={"token": TOKEN}, headers={"X": 7, "Y": HEADER})  # type: ignore[arg-type,dict-item]
    texts.append(str(refused.value))
    with pytest.raises(ValueError) as invalid:
        sabir.NativeOption(kind="mcp_server", name="s", authorization=[TOKEN])  # type: ignore[arg-type]
    texts.append(str(invalid.value))

    assert not any(secret in text for secret in (TOKEN, HEADER) for text in texts)
    assert "query-5d11" not in repr(SERVER)
    other = sabir.mcp_server("https://mcp.example.org/sse?key=query-5d11", authorization="another")
    assert SERVER not in (other, weather) and pickle.loads(pickle.dumps(SERVER)) == SERVER


@pytest.mark.parametrize(
    "make",
    [
        lambda: sabir.web_search(domains="a.org"),
        lambda: sabir.web_search(domains=["a.org"], blocked_domains=["b.org"]),
        lambda: sabir.web_search(max_uses=0),
        lambda: sabir.web_search(vendor={"*": {"deep": True}}),
        lambda: sabir.web_search(otherwise=sabir.code_execution()),
        lambda: sabir.mcp_server("ftp://example.org"),
        lambda: sabir.mcp_server("https://me:mine@example.org"),
        lambda: sabir.mcp_server("https://example.org", name="no name"),
        lambda: sabir.Option.all_of([sabir.web_search]),
        lambda: sabir.Option.all_of([search, sabir.web_search(otherwise=search)]),
    ],
)
def test_what_no_vendor_accepts_is_refused(make: Any) -> None:
    with pytest.raises(OptionInvalid):
        make()


def test_only_the_function_given_for_a_tool_runs_here() -> None:
    call = sabir.Message(
        policy="llm",
        payload=sabir.OptionCallPayload(invocation_id="c", option_name="search", arguments={"query": "rain"}),
    )
    (result,) = sabir.answer_sync([call], [sabir.web_search(otherwise=search)])
    assert result.result is not None and result.result.result == "nothing about rain"

    unknown = call.model_copy(update={"payload": call.call.model_copy(update={"option_name": "web_search"})})  # type: ignore[union-attr]
    (refused,) = sabir.answer_sync([unknown], [sabir.web_search(otherwise=search)])
    assert refused.result is not None and refused.result.error_type == "option_not_offered"
    with pytest.raises(OptionInvalid):
        sabir.web_search().answer_sync(unknown)
