"""How Prefect's clients of this process send their requests: soon again to a busy server, never to one that is lost."""

import asyncio
import contextlib
import functools
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
from prefect.client.base import PrefectHttpxAsyncClient, PrefectHttpxSyncClient

# After these, Prefect's own and longer pauses follow.
_BUSY_PAUSES_S = (0.1, 0.2, 0.4, 0.8, 1.6, 0.0)
_TURN_S = 0.01
_creating = threading.Lock()


def _busy_pauses_s() -> Iterator[float]:
    """The pauses after answers that the server is busy: random, so that many devices do not ask at once again."""
    for longest_s in _BUSY_PAUSES_S:
        yield random.uniform(0, longest_s)


def _creates_a_run(request: httpx.Request) -> bool:
    """Return whether a request is one of those that follow one another: with SQLite, of many at once one succeeds."""
    return request.url.path.endswith(("/task_runs/", "/flow_runs/"))


@contextlib.asynccontextmanager
async def _in_turn(request: httpx.Request) -> AsyncIterator[None]:
    """Wait, without holding up the event loop, until a request may be sent."""
    if not _creates_a_run(request):
        yield
        return
    while not _creating.acquire(blocking=False):
        await asyncio.sleep(_TURN_S)
    try:
        yield
    finally:
        _creating.release()


@functools.cache
def patch_clients(refuse: Callable[[], None]) -> None:
    """Let Prefect's clients call `refuse`, which may raise, before each request, and repeat it soon if it is busy.

    With SQLite the server answers 503 when two requests write at the same moment, as when many devices start. Prefect
    repeats such a request after 2 s, then 4 s, 8 s, ...: some devices would start half a minute late.
    """
    sync, asynchronous = PrefectHttpxSyncClient._send_with_retry, PrefectHttpxAsyncClient._send_with_retry

    def send(client: Any, request: Any, send: Callable[..., Any], *rest: Any, **more: Any) -> Any:
        def attempt(*words: Any, **named: Any) -> Any:
            with _creating if _creates_a_run(request) else contextlib.nullcontext():
                for pause_s in _busy_pauses_s():
                    refuse()
                    answer = send(*words, **named)
                    if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                        break
                    time.sleep(pause_s)
            return answer

        return sync(client, request, attempt, *rest, **more)

    async def send_async(client: Any, request: Any, send: Callable[..., Any], *rest: Any, **more: Any) -> Any:
        async def attempt(*words: Any, **named: Any) -> Any:
            async with _in_turn(request):
                for pause_s in _busy_pauses_s():
                    refuse()
                    answer = await send(*words, **named)
                    if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                        break
                    await asyncio.sleep(pause_s)
            return answer

        return await asynchronous(client, request, attempt, *rest, **more)

    PrefectHttpxSyncClient._send_with_retry = send  # type: ignore[assignment, method-assign]
    PrefectHttpxAsyncClient._send_with_retry = send_async  # type: ignore[assignment, method-assign]
