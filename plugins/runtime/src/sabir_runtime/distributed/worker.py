"""Worker: a process that performs the policies of a context for callers in other processes.

    sabir.<context>.<policy> ──queue group──▶ Worker ──▶ bound policy, in this process ──▶ Answered · Failed
                                                ├ full            ──▶ Busy, or the request is queued (`work_queue`)
                                                ├ not done soon   ──▶ Accepted, then Alive every `beat` seconds
                                                ├ cancelled       ──▶ stopped, no answer
                                                ├ not readable    ──▶ Failed, if the request names an inbox
                                                └ stop()          ──▶ finishes its work, then Released for the others

A queue group is a set of subscribers from which the server chooses one for each message. A full worker stays in its
queue group and replies Busy. So the server's reply "no responders" means that no worker serves the policy. Leaving the
group would also take effect too late to avoid Busy.
"""

import asyncio
import os
import re
import secrets
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Self

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from sabir.authoring import one_line

from sabir_runtime import BaseContext, BoundPolicy, InMemoryRunner
from sabir_runtime.distributed import envelopes
from sabir_runtime.distributed.connection import NatsConnection, Target, display_target, logger
from sabir_runtime.distributed.errors import EnvelopeInvalid, NoServer, RequestTimedOut
from sabir_runtime.distributed.message_cache import KnownMessages
from sabir_runtime.distributed.settings import WorkerSettings
from sabir_runtime.distributed.subjects import (
    QUEUE,
    all_of,
    beats_for,
    check_context,
    is_inbox,
    requests_for,
    requests_of,
)
from sabir_runtime.distributed.work_queue import (
    NOTHING,
    Memory,
    Work,
    WorkQueue,
    check_asker,
    check_subject,
    make_context,
    perform_request,
    refusal_of,
)

RELEASED_WITHIN = 5.0
"""The maximum number of seconds that a stopping worker waits for cancelled policies to end."""


class Worker:
    """Performs the policies of one context for callers in other processes, until `stop`.

    `context` is the context's class, or a function that accepts a runner and returns a context. `target` is a URL of a
    NATS server, several URLs separated by commas, or a connected nats-py client, which stays open. `name` is the name
    that callers use for the context; None means the class's name. Two versions of a context can run side by side under
    two names. `settings` contains limits, intervals and credentials; None means the defaults.

        await Worker(Desk, "nats://127.0.0.1:4222").run()
        async with Worker(Desk, url): …          answers while the block runs

    Raises AccessInvalid for a wrong URL, and RuntimeFault for a wrong context or name.

    >>> from sabir_runtime import BaseContext, llm_policy
    >>> from sabir_runtime.distributed import Worker
    >>> class Desk(BaseContext):
    ...     def __init__(self, runner):
    ...         super().__init__(runner)
    ...         self.llm = self._bind(llm_policy("echo:m"))
    >>> worker = Worker(Desk, "nats://127.0.0.1:4222", name="Desk-v2")
    >>> worker.name, worker.policies
    ('Desk-v2', ['llm'])
    """

    def __init__(
        self,
        context: Callable[[InMemoryRunner], BaseContext],
        target: Target,
        *,
        name: str | None = None,
        settings: WorkerSettings | None = None,
    ) -> None:
        display_target(target)  # raises for an invalid URL
        self.context = make_context(context)
        self.name = check_context(type(self.context).__name__ if name is None else name)
        self.id = f"{re.sub(r'[^A-Za-z0-9]+', '-', socket.gethostname())}-{os.getpid()}-{secrets.token_hex(3)}"
        """The worker's id: the host's name, the process id and a random suffix."""
        self._target = target
        self._settings = settings or WorkerSettings()
        self._policies: dict[str, BoundPolicy] = self.context.bound_policies()
        self._queue = WorkQueue(self._settings)
        self._memory = Memory()
        self._known = KnownMessages()
        self._subscriptions: list[Subscription] = []
        self._sendings: set[asyncio.Task[None]] = set()
        self._beat: asyncio.TimerHandle | None = None
        self._connection: NatsConnection | None = None
        self._stop: asyncio.Event | None = None

    @property
    def policies(self) -> list[str]:
        """The names of the context's bound policies, all of which the worker performs."""
        return list(self._policies)

    @property
    def requests(self) -> list[str]:
        """The ids of the requests that are running now."""
        return list(self._queue.begun)

    @property
    def waiting(self) -> list[str]:
        """The ids of the queued requests, the oldest first."""
        return [work.request.id for work in self._queue.waiting]

    @property
    def trouble(self) -> str:
        """The last error since the NATS server was last connected, in one line; "" without an error."""
        return "" if self._connection is None else self._connection.trouble

    @property
    def is_listening(self) -> bool:
        """True after the worker has subscribed to requests, even after `stop`."""
        return bool(self._subscriptions)

    def __repr__(self) -> str:
        """Return a text with the worker's id, its context and the target, without passwords."""
        return f"<worker {self.id} for {self.name!r} at {display_target(self._target)}>"

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Connect, and perform requests until `stop`. Returns after the running requests finished or were cancelled.

        `ready` is called once, when requests can arrive. Raises NoServer if the server cannot be reached for `patience`
        seconds, AccessRefused if the server rejects the worker, and AccessInvalid for unusable credentials. If it was
        connected, closes the context and the connection at the end, but not a client that you passed.
        """
        await self.start()
        ready()
        assert self._stop is not None
        gone, stopped = self._require_connection().gone, asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((stopped, gone), return_when=asyncio.FIRST_COMPLETED)
            if gone.done() and not self._stop.is_set():
                raise gone.result()
        finally:
            stopped.cancel()
            await self.finish()

    def stop(self) -> None:
        """Let `run` return: accept no more requests, and finish the running requests within `drain` seconds.

        A second call cancels the running requests at once, so that other workers perform them. Before `run`, a call has
        no effect. `stop` does not end an `async with` block.
        """
        if self._stop is None:
            return
        if self._stop.is_set():
            self._release_all()
        self._stop.set()

    async def __aenter__(self) -> Self:
        """Connect, and begin to perform requests."""
        await self.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Finish the running requests within `drain` seconds, and close the connection and the context."""
        await self.finish()

    async def start(self) -> None:
        """Connect, and begin to perform requests. Returns when requests can arrive. Raises the errors of `run`."""
        self._stop = asyncio.Event()
        label, settings = f"sabir worker {self.id}", self._settings
        connection = NatsConnection(self._target, label=label, patience=settings.patience, access=settings.access)
        self._connection = connection
        await connection.open()
        self._subscriptions = [
            await connection.subscribe(all_of(self.name), self._on_notice),
            *[
                await connection.subscribe(subject, self._on_request, queue)
                for each in self.policies
                for subject, queue in (
                    (requests_of(self.name, each), QUEUE),
                    (requests_for(self.id, self.name, each), ""),
                )
            ],
        ]
        await connection.check_subscriptions()
        logger.info("worker %s answers %s: %s", self.id, self.name, ", ".join(self.policies))

    async def finish(self) -> None:
        """Accept no more requests, finish the running requests within `drain` seconds, and close the connection.

        Queued requests are refused, and unfinished requests cancelled; their callers ask other workers. Closes the
        context, too. Call it only after `start`.
        """
        assert self._stop is not None, "start it first"
        self._stop.set()
        connection = self._require_connection()
        notices, *requests = self._subscriptions
        # While the server is away there is nothing to drain, but subscriptions would return with the connection.
        end_subscription = connection.drain if connection.is_up else connection.unsubscribe
        await asyncio.gather(*(end_subscription(each) for each in requests))
        self._refuse_all(self._queue.remove_waiting())
        await self._wait_until_idle(self._settings.drain if connection.is_open else 0.0)
        self._release_all()
        await self._wait_until_idle(RELEASED_WITHIN)
        if self._beat is not None:
            self._beat.cancel()
        await connection.unsubscribe(notices)
        if connection.is_up:
            with suppress(NoServer):
                await connection.flush()
        await connection.close()
        await self.context.aclose()

    async def _wait_until_idle(self, within: float) -> None:
        """Wait until all requests are done and all replies are sent, but at most `within` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while tasks := [*(work.task for work in self._queue.begun.values() if work.task), *self._sendings]:
                    await asyncio.wait(tasks)

    async def _on_request(self, message: Msg) -> None:
        if not self._may_answer(message):
            return
        try:
            body = envelopes.unpack(message.data, self._settings.largest)
            request = envelopes.decode_request(body, self._known)
            check_subject(message.subject, request, self.id)
            cached, known = self._memory.find(request.id), self._queue.find(request.id)
            check_asker(request, message.reply, cached or known)
        except Exception as error:  # any error: the caller waits for a reply
            fault = refusal_of(error)
            logger.warning("worker %s refused a request: %s", self.id, fault.message)
            await self._send_envelope(message.reply, envelopes.Failed(id="", worker=self.id, error=fault))
            return
        if cached is not None:
            if cached.answer is not NOTHING:
                await self._require_connection().publish(message.reply, cached.answer)
        elif known is not None:
            known.reply = message.reply
            if known.is_accepted:
                await self._send_accepted(known)
        elif (self._queue.has_place or request.waited) and self._queue.can_hold(len(body)):
            self._accept_or_queue(request, message.reply, len(body))
        else:
            await self._send_envelope(message.reply, envelopes.Busy(id=request.id, worker=self.id))

    def _may_answer(self, message: Msg) -> bool:
        """Return whether a message's reply subject is an inbox, and log a warning otherwise."""
        if is_inbox(message.reply, self._settings.inbox):
            return True
        named = repr(one_line(message.reply, 80)) if message.reply else "none"
        logger.warning("worker %s dropped a message, because its reply subject (%s) is not an inbox", self.id, named)
        return False

    def _accept_or_queue(self, request: envelopes.Request, reply: str, size: int) -> None:
        """Begin a request, or queue it. If the queue is then too long, reply Busy to the youngest request."""
        loop = self._require_connection().loop
        now, longest = loop.time(), self._settings.longest
        ends, since = now + min(request.seconds_left, longest), now - min(request.waited, longest)
        work = Work(request, reply, ends=ends, since=since, size=size)
        work.timer = loop.call_later(
            min(self._settings.accept_after, request.seconds_left), self._report_accepted, work
        )
        if self._queue.has_place:
            self._queue.begin(work)
            self._start_work(work)
        elif (youngest := self._queue.wait(work)) is not None:
            self._refuse_all([youngest])

    def _start_work(self, work: Work) -> None:
        work.task = self._require_connection().loop.create_task(self._perform_work(work))
        work.task.add_done_callback(lambda task: self._end_work(work, task))

    def _refuse_all(self, removed: list[Work]) -> None:
        """Reply Busy to the callers of these queued requests, so that they send the requests again."""
        for work in removed:
            work.timer.cancel()
            self._send_later(self._send_envelope(work.reply, envelopes.Busy(id=work.request.id, worker=self.id)))

    async def _perform_work(self, work: Work) -> None:
        connection = self._require_connection()
        limits = (connection.largest, self._settings.compress_above)
        answer = await perform_request(work, self._policies[work.request.policy], self.id, limits)
        self._memory.add(work.request.id, answer, work.asker)
        try:
            await connection.publish(work.reply, answer)
        except NoServer as error:
            logger.warning("worker %s could not answer: %s", self.id, error)

    def _end_work(self, work: Work, task: asyncio.Task[None]) -> None:
        """Remove a finished or cancelled request, and begin the next one."""
        id = work.request.id
        work.timer.cancel()
        following = self._queue.remove(work)
        if following is not None:
            self._start_work(following)
        if not task.cancelled():
            fault = task.exception()
            if fault is not None:
                logger.error("worker %s failed at request %s", self.id, id, exc_info=fault)
        elif work.is_released:
            self._send_later(self._send_envelope(work.reply, envelopes.Released(id=id, worker=self.id)))
        else:
            self._memory.add(id, NOTHING)

    async def _on_notice(self, message: Msg) -> None:
        try:
            notice = envelopes.decode_notice(envelopes.unpack(message.data, self._settings.largest))
        except EnvelopeInvalid as error:
            logger.warning("worker %s: %s", self.id, error)
            return
        if not isinstance(notice, envelopes.Sought):
            self._cancel_request(notice.id)
        elif self._may_answer(message) and self._can_perform(notice.id):
            await self._send_envelope(message.reply, envelopes.Willing(id=notice.id, worker=self.id))

    def _can_perform(self, id: str) -> bool:
        """Return whether this worker has, had or can now begin the request. It begins nothing while it stops."""
        assert self._stop is not None
        known = self._queue.find(id) is not None or self._memory.find(id) is not None
        return known or (self._queue.has_place and not self._stop.is_set())

    def _cancel_request(self, id: str) -> None:
        work = self._queue.find(id)
        if work is not None and work.task is not None:
            work.stop()
            return
        if work is not None:
            work.timer.cancel()
            self._queue.remove(work)
        if self._memory.find(id) is None:
            self._memory.add(id, NOTHING)

    def _release_all(self) -> None:
        self._refuse_all(self._queue.remove_waiting())
        for work in self._queue.begun.values():
            work.is_released = True
            work.stop()

    def _report_accepted(self, work: Work) -> None:
        """Send Accepted to the caller of a request, and set the timer that stops the request."""
        loop = self._require_connection().loop
        work.timer = loop.call_at(work.ends, self._stop_overdue, work)
        work.is_accepted = True
        self._send_later(self._send_accepted(work))
        if self._beat is None:
            self._beat = loop.call_later(self._settings.beat, self._send_beats)

    def _stop_overdue(self, work: Work) -> None:
        """Stop a request. If the worker's limit is shorter than the caller's timeout, send the caller a Failed."""
        self._cancel_request(work.request.id)
        longest = self._settings.longest
        if work.request.seconds_left > longest:
            remedy = "increase WorkerSettings(longest=…)"
            error = RequestTimedOut(f"the request was stopped after {longest:g} s, the worker's limit; {remedy}")
            self._send_later(
                self._send_envelope(
                    work.reply, envelopes.Failed(id=work.request.id, worker=self.id, error=refusal_of(error))
                )
            )

    async def _send_accepted(self, work: Work) -> None:
        await self._send_envelope(
            work.reply, envelopes.Accepted(id=work.request.id, worker=self.id, every=self._settings.beat)
        )

    def _send_beats(self) -> None:
        """Report to each caller which accepted requests are still in work, and schedule the next beat.

        Requests that were already queued at the last beat get Busy.
        """
        self._refuse_all(self._queue.remove_overdue())
        callers: dict[str, list[str]] = {}
        for work in self._queue.all():
            if work.is_accepted:
                callers.setdefault(beats_for(work.reply), []).append(work.request.id)
        for subject, requests in callers.items():
            self._send_later(self._send_envelope(subject, envelopes.Alive(worker=self.id, requests=tuple(requests))))
        self._beat = (
            self._require_connection().loop.call_later(self._settings.beat, self._send_beats) if callers else None
        )

    def _send_later(self, sending: Coroutine[Any, Any, None]) -> None:
        task = self._require_connection().loop.create_task(sending)
        self._sendings.add(task)
        task.add_done_callback(self._sendings.discard)

    async def _send_envelope(self, subject: str, envelope: envelopes.Envelope) -> None:
        with suppress(NoServer):
            await self._require_connection().publish(subject, envelopes.encode(envelope))

    def _require_connection(self) -> NatsConnection:
        assert self._connection is not None, "start it first"
        return self._connection
