"""Functions of a person's, called from an event loop: coroutine functions in it, plain ones in threads of core's.

await called(ask, question)      what it gives, or what it raises: no error is lost on the way
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sabir.options.threads import in_thread

Given = TypeVar("Given")
Answer = TypeVar("Answer")


async def called(function: Callable[[Given], Answer | Awaitable[Answer]], given: Given) -> Answer:
    """What the function gives: a coroutine function is awaited, any other runs in a thread, as options do."""
    answer = function(given) if inspect.iscoroutinefunction(function) else await in_thread(function, given)
    return await answer if isinstance(answer, Awaitable) else answer
