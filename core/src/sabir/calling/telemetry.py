"""What a call reports: to the logger `sabir`, and to the telemetry hooks of installed plugins.

    WARNING   one line for each call with losses
    INFO      an attempt that failed; a call whose losses are all `withheld`
    DEBUG     bodies, redacted: no header values, long base64 cut short

Nothing here changes a call or can break it.
"""

import logging
import re
from itertools import count

from sabir.base.errors import one_line, printable
from sabir.calling.exchange import Failed, Open, Script
from sabir.contract.dialect import Rendering
from sabir.hooks.plugins import Hooks
from sabir.vocabulary.reply import Reply

logger = logging.getLogger("sabir")
logger.addHandler(logging.NullHandler())

_numbers = count(1)

LONGEST_RUN = 200
"""The most characters of base64 that a log shows whole."""
_BASE64 = re.compile(rf"[A-Za-z0-9+/_-]{{{LONGEST_RUN + 1},}}={{0,2}}")


def redact(body: bytes) -> str:
    """A body as a log may show it: data URLs and other long base64 cut to their first characters."""
    text = printable(body.decode("utf-8", errors="replace"))
    return _BASE64.sub(lambda run: f"{run[0][:20]}…({len(run[0])} characters)", text)


class CallWatch:
    """Watches one call: logs it, and tells the telemetry hooks, under a number that no other call has."""

    def __init__(self, rendering: Rendering, hooks: Hooks) -> None:
        self._rendering = rendering
        self._hooks = hooks
        self._call = next(_numbers)

    def tell(self, action: Open | Failed) -> None:
        """Report that a request is about to be sent, or that an attempt failed."""
        target = self._rendering.target
        if isinstance(action, Open):
            if logger.isEnabledFor(logging.DEBUG):
                request = action.request
                body = redact(request.body)
                logger.debug("%s request %d to %s: %s", target, action.attempt, request.path, body)
            self._hooks.call_started(self._rendering, action.attempt, self._call)
        else:
            error = action.error
            logger.info("%s attempt %d failed: %s: %s", target, action.attempt, type(error).__name__, error)
            self._hooks.call_failed(self._rendering, error, action.attempt, self._call)

    def over(self, script: Script[Reply]) -> Script[Reply]:
        """The same script; logs its losses once when it ends, however it ends, and tells the hooks of its end."""
        losses = self._rendering.losses
        try:
            reply = yield from script
            losses = reply.losses
        except BaseException as error:
            # GeneratorExit: the driver closed the script, because the stream was closed or the call was cancelled.
            self._hooks.call_given_up(self._rendering, None if isinstance(error, GeneratorExit) else error, self._call)
            raise
        finally:
            if losses:
                shown = one_line("; ".join(map(str, losses)), 1000)
                level = logging.INFO if {loss.kind for loss in losses} == {"withheld"} else logging.WARNING
                logger.log(level, "%s lost %d: %s", self._rendering.target, len(losses), shown)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s reply: %s", self._rendering.target, redact(repr(reply).encode()))
        self._hooks.call_ended(self._rendering, reply, self._call)
        return reply
