"""AgentManagerActor: the agents of one thread. An agent sends messages to a model, and runs the options it calls.

    PROCESS_WITH_AGENT ─▶ evaluate(adapter of config.model, …, session of the thread) ─▶ AGENT_RESPONSE

Every message and option result is recorded in the thread's session before it is used. An interrupted run of an agent
continues where it stopped, and a finished run is answered from its records.
"""

import json
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from time import monotonic
from typing import Any

import sabir
from pydantic import BaseModel, TypeAdapter, ValidationError
from sabir import Adapter, Option, OptionResultPayload, Origin, SabirError, Settings, SettingsInvalid, Usage
from sabir import Message as ModelMessage
from sabir.authoring import describe_validation_error, one_line
from sabir.errors import CallError, OutputInvalid, OutputTruncated, PluginError
from sabir_session import (
    Event,
    InnerMessage,
    Prompt,
    PromptResponse,
    RecordingFailed,
    Session,
    continued_model,
    enable_inner_message_recording,
    evaluate,
)

from sabir_actors import data as typed
from sabir_actors.actor import Actor, ActorHost, HandlerResult
from sabir_actors.adapters import SharedAdapter
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.phases import AGENTS, Phase, PhaseReply
from sabir_actors.protocol import Message, data_of
from sabir_actors.state import ThreadView

NAMESPACE = "sabir.actors"
"""The namespace of agents' prompts in the session. A prompt's key is `run` in the context, else the message's id."""
_TURNS = TypeAdapter(list[typed.Turn])
_ROLES = {"system": sabir.system, "user": sabir.user, "assistant": sabir.assistant}


class Agent:
    """An agent: its configuration, and the pydantic model of its answer."""

    def __init__(self, config: typed.AgentConfig, output: type[BaseModel] = PhaseReply) -> None:
        self.config = config
        self.output = output

    @cached_property
    def settings(self) -> Settings:
        """The settings of the agent's requests, including the response format. Computed once. Raises ActorError
        (INVALID_CONFIG) for an invalid setting.
        """
        return settings_of(self.config, response_format=self.output)


def settings_of(config: typed.AgentConfig | typed.AgentChange, **more: Any) -> Settings:
    """Return the settings of a configuration or a change, with the settings `more`. Raises ActorError (INVALID_CONFIG)
    for an invalid value.
    """
    try:
        return Settings(**config.settings, **more)
    except SettingsInvalid as error:
        raise ActorError(ErrorCode.INVALID_CONFIG, f"the agent's configuration is invalid: {error}") from None


class AgentManagerActor(Actor):
    """The agents of one thread. The system creates it for each running thread; you can also use it without a thread.

    `session` records the agents' runs, so that an interrupted run continues and a finished run is not repeated. With
    None, runs are not recorded.
    """

    def __init__(self, actor_id: str, system: ActorHost, session: Session | None = None) -> None:
        super().__init__(actor_id, system)
        self.session = session
        self.agents: dict[str, Agent] = {}
        self.usage: dict[str, Usage] = {}
        """Agent id → the token usage of the agent's latest successful run."""
        self._adapters: dict[str, SharedAdapter] = {}
        if session is not None:
            enable_inner_message_recording(session)

    def add_agent(self, agent_id: str, agent: Agent) -> None:
        """Add or replace an agent. Raises ActorError (INVALID_CONFIG) for an unknown model or option, or an invalid
        setting.
        """
        self._acquire_adapter(agent.config.model)
        self._find_options(agent.config)
        self._merge_settings(agent)
        self.agents[agent_id] = agent

    async def on_process_with_agent(self, message: Message) -> HandlerResult:
        """Handle PROCESS_WITH_AGENT: run an agent and return its answer.

        Without `agent_id`, the agent with the sender's id answers, else the only agent, unless the sender is a phase of
        the thread. Raises ActorError: UNKNOWN_AGENT, AGENT_ERROR if the model's call failed or its reply is unusable,
        INVALID_CONFIG, INVALID_MESSAGE or RECORDING_FAILED.
        """
        return await self._run_agent(message, data_of(message, typed.ProcessWithAgent))

    async def on_invoke_agent(self, message: Message) -> HandlerResult:
        """Handle INVOKE_AGENT: run the agent with the id in the message, and return its answer."""
        request = data_of(message, typed.InvokeAgent)
        answer = await self._run_agent(message, request)
        return typed.AgentInvoked(agent_id=request.agent_id, **dict(answer))

    async def on_update_agent_config(self, message: Message) -> HandlerResult:
        """Handle UPDATE_AGENT_CONFIG: change an agent's configuration from its next run on. Raises ActorError
        (UNKNOWN_AGENT or INVALID_CONFIG), and changes nothing then.
        """
        request = data_of(message, typed.UpdateAgentConfig)
        agent = self._find_agent(request.agent_id)
        self.add_agent(request.agent_id, Agent(apply_change(agent.config, request.config), agent.output))
        return typed.AgentConfigUpdated(agent_id=request.agent_id)

    async def restarting(self) -> None:
        """Use new adapters from the next run on. Other threads that use the present adapters keep them."""
        await self._release_adapters(replace=True)

    async def stopping(self) -> None:
        """End the use of the shared adapters."""
        await self._release_adapters(replace=False)

    async def _release_adapters(self, *, replace: bool) -> None:
        adapters, self._adapters = self._adapters, {}
        for model, shared in adapters.items():
            await self.system.adapters.release(model, shared, replace=replace)

    async def _run_agent(self, message: Message, request: typed.ProcessWithAgent) -> typed.AgentResponse:
        began = monotonic()
        agent_id = request.agent_id or self._choose_agent_id(message)
        agent = self._find_agent(agent_id)
        try:
            response = await self._evaluate_request(agent_id, agent, request, message)
            result = _build_agent_result(response, agent.output)
        except ActorError:
            raise
        except SabirError as error:
            raise _convert_error(agent_id, error) from error
        self.usage[agent_id] = response.usage
        return typed.AgentResponse(result=result, processing_time=monotonic() - began)

    async def _evaluate_request(
        self, agent_id: str, agent: Agent, request: typed.ProcessWithAgent, message: Message
    ) -> PromptResponse[None]:
        key = str(request.context.get("run") or message.id)
        prompt: Prompt[None] = Prompt(ns=NAMESPACE, key=key, messages=_build_messages(agent.config, request))
        earlier = self._find_evaluation_id(key)
        return await evaluate(
            self._acquire_adapter(agent.config.model),
            prompt,
            options=self._find_options(agent.config),
            settings=self._merge_settings(agent),
            session=self.session,
            recorder=self.system.store_thread if self.session is not None and self.session.has_journal else None,
            resume=earlier is not None,
            evaluation_id=earlier,
            watch=partial(self._notify_watcher, message) if request.stream else None,
            agent=agent_id.rpartition("/")[2],  # the phase's name, without the thread's id
        )

    def _notify_watcher(self, message: Message, event: Event) -> None:
        """Pass an event of an agent's reply to the system's `watch` function, if there is one."""
        if self.system.watch is not None:
            self.system.watch(message, event)

    def origins(self) -> list[Origin]:
        """Return the origins of all replies in the session, in order; [] without a session."""
        records = () if self.session is None else self.session.select_all(InnerMessage)
        return [message.origin for record in records for message in record.messages if message.origin]

    def _find_evaluation_id(self, key: str) -> str | None:
        """Return the id of the latest recorded evaluation of a run, named by its prompt key; None if there is none."""
        if self.session is None:
            return None
        records = [each for each in self.session.select_all(InnerMessage) if each.prompt_key == key]
        return records[-1].evaluation_id if records else None

    def _choose_agent_id(self, message: Message) -> str:
        """Return the id of the agent of the sender's phase, or of the only agent.

        Raises ActorError (UNKNOWN_AGENT) if there are several and the sender is not a phase with one of them.
        """
        if message.sender in self.agents:
            return message.sender
        if len(self.agents) == 1 and not self._is_phase(message.sender):
            return next(iter(self.agents))
        known = ", ".join(self.agents) or "none"
        reason = f"{message.type} has no agent_id, and its sender {message.sender!r} is not a phase with an agent here"
        raise ActorError(ErrorCode.UNKNOWN_AGENT, f"{reason}; give agent_id, one of: {known}")

    def _is_phase(self, actor_id: str | None) -> bool:
        """Return whether `actor_id` is the id of a phase actor of this thread."""
        thread_id, _, name = self.actor_id.rpartition("/")
        return name == AGENTS and (actor_id or "").rpartition("/")[0] == thread_id and bool(thread_id)

    def _find_agent(self, agent_id: str) -> Agent:
        agent = self.agents.get(agent_id)
        if agent is None:
            known = ", ".join(self.agents) or "none"
            raise ActorError(ErrorCode.UNKNOWN_AGENT, f"no agent has the id {agent_id!r}; known ids: {known}")
        return agent

    def _acquire_adapter(self, model: str) -> Adapter:
        try:
            if model not in self._adapters:
                self._adapters[model] = self.system.adapters.acquire(model)
            return self._adapters[model].adapter
        except SabirError as error:
            raise ActorError(ErrorCode.INVALID_CONFIG, one_line(f"the model {model!r}: {error}")) from None

    def _find_options(self, config: typed.AgentConfig) -> Sequence[Option]:
        unknown = [name for name in config.tools if name not in self.system.options]
        if unknown:
            known = ", ".join(self.system.options) or "none"
            raise ActorError(ErrorCode.INVALID_CONFIG, f"no option is named {unknown[0]!r}; the system has {known}")
        return [self.system.options[name] for name in config.tools]

    def _merge_settings(self, agent: Agent) -> Settings:
        common = self.system.settings
        return agent.settings if common is None else agent.settings.laid_over(common)


def config_of(
    view: ThreadView, phase: Phase, system: ActorHost, origins: Callable[[], Sequence[Origin]] = tuple
) -> typed.AgentConfig:
    """Return the configuration of a phase's agent: from the phase and the system, with the thread's later changes.

    `origins` returns the origins of the thread's replies, in order. A changed model without a dialect gets the dialect
    of its last reply in the thread, if there is one. Raises ActorError (INVALID_CONFIG) if neither the phase nor the
    system has a model.
    """
    model = phase.model or system.model
    if model is None:
        reason = f"neither the system nor the phase {phase.name!r} has a model; pass ActorSystem(model=…)"
        raise ActorError(ErrorCode.INVALID_CONFIG, reason)
    tools = system.options if phase.options is None else phase.options
    config = typed.AgentConfig(model=model, tools=list(tools))
    for change in view.configs.get(phase.name, ()):
        config = apply_change(config, change)
        if change.model:
            config = config.model_copy(update={"model": continued_model(change.model, origins())})
    return config


def apply_change(config: typed.AgentConfig, change: typed.AgentChange) -> typed.AgentConfig:
    """Return the configuration with the fields of a change. A field that the change sets to None gets its default."""
    fields = {**config.model_dump(exclude_unset=True), **change.model_dump(exclude_unset=True)}
    return typed.AgentConfig(**{name: value for name, value in fields.items() if value is not None})


def read_turns(turns: Sequence[typed.Turn]) -> list[ModelMessage]:
    """Return the sabir messages for a conversation in the form of the protocol."""
    return [_ROLES[turn.role](turn.content) for turn in turns]


def _build_messages(config: typed.AgentConfig, request: typed.ProcessWithAgent) -> list[ModelMessage]:
    """Return the messages for the model: the agent's system prompt, the messages in the context, and the input. Raises
    ActorError (INVALID_MESSAGE) for invalid messages in the context.
    """
    system_messages = [sabir.system(config.system_prompt)] if config.system_prompt else []
    try:
        turns = _TURNS.validate_python(request.context.get("messages") or [])
    except ValidationError as error:
        reason = one_line(f"the context's messages are invalid: {describe_validation_error(error)}")
        raise ActorError(ErrorCode.INVALID_MESSAGE, reason) from None
    return [*system_messages, *read_turns(turns), sabir.user(request.input)]


def _build_agent_result(response: PromptResponse[None], output: type[BaseModel]) -> typed.AgentResult:
    """Return the agent's result for a reply.

    If the reply does not match PhaseReply, its text is the response: ActorError (AGENT_ERROR) is raised if it is empty.
    For any other `output`, OutputInvalid or OutputTruncated is raised instead.
    """
    calls = _collect_tool_calls(response.messages)
    try:
        answer = response.reply.parse(output)
    except (OutputInvalid, OutputTruncated):
        if output is not PhaseReply:
            raise
        text = _extract_response(response.text)
        if not text.strip():
            reason = f"the reply is empty; its finish reason is {response.reply.finish_reason}"
            raise ActorError(ErrorCode.AGENT_ERROR, reason) from None
        return typed.AgentResult(response=text, tool_calls=calls)
    response_field: object = getattr(answer, "response", None)
    confidence: object = getattr(answer, "confidence", None)
    extra: dict[str, Any] = {"output": answer.model_dump(mode="json")}
    return typed.AgentResult(
        response=response_field if isinstance(response_field, str) else answer.model_dump_json(),
        confidence=confidence if isinstance(confidence, float) and 0 <= confidence <= 1 else None,
        tool_calls=calls,
        **extra,
    )


def _extract_response(text: str) -> str:
    """Return the field `response` if the text is a JSON object in which it is a non-empty text, else `text`."""
    try:
        parsed = json.loads(text)
    except ValueError:
        return text
    response = parsed.get("response") if isinstance(parsed, dict) else None
    return response if isinstance(response, str) and response else text


def _collect_tool_calls(messages: Sequence[ModelMessage]) -> list[typed.ToolCall]:
    results = {each.result.invocation_id: each.result for each in messages if each.result}
    tool_calls = []
    for call in (each.call for each in messages if each.call):
        result = results.get(call.invocation_id)
        value = None if result is None else _result_content(result)
        tool_calls.append(typed.ToolCall(name=call.option_name, arguments=dict(call.arguments), result=value))
    return tool_calls


def _result_content(result: OptionResultPayload) -> object:
    """Return the value of an option result, or the text of its error.

    Parts replace the value: their joined text if all are texts, otherwise a list of the parts as JSON objects.
    """
    if result.is_error or not result.parts:
        return result.error_message if result.is_error else result.result
    if all(part.kind == "text" for part in result.parts):
        return "".join(part.text for part in result.parts if part.kind == "text")
    return [part.model_dump(mode="json") for part in result.parts]


def _convert_error(agent_id: str, error: Exception) -> ActorError:
    """Convert an exception of an agent's run to an ActorError, which is retryable if it was a retryable CallError."""
    retryable = isinstance(error, CallError) and error.retryable
    code = ErrorCode.INVALID_CONFIG if isinstance(error, PluginError) else ErrorCode.AGENT_ERROR
    if isinstance(error, RecordingFailed):
        code = ErrorCode.RECORDING_FAILED
    details: dict[str, Any] = {"cause": type(error).__name__, "agent_id": agent_id}
    if isinstance(error, CallError) and error.retry_after is not None:
        details["retry_after"] = error.retry_after
    return ActorError(code, one_line(str(error)), retryable=retryable, **details)
