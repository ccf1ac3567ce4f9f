"""A TCP proxy on a loopback port that can be made slow, silent or broken while it runs."""

import asyncio
import contextlib
import socket
import struct
import threading
from typing import Self

_CHUNK = 1 << 16
_QUEUED_CHUNKS = 4096
_POLL_S = 0.01


class LinkProxy:
    """Forwards connections to `port` to `host`:`target_port`; its attributes may be changed at any time.

    delay_s: delay of every byte, in either direction. rate_bytes_per_s: None for no limit. stalled: no byte arrives,
    and no connection ends. cut_after_bytes: after so many bytes of one connection towards the device, all connections
    are reset, and new ones too until `restore`.
    """

    def __init__(self, host: str, target_port: int) -> None:
        self.delay_s = 0.0
        self.rate_bytes_per_s: float | None = None
        self.stalled = False
        self.cut_after_bytes: int | None = None
        self.is_cut = False
        self.port = 0
        self._target = (host, target_port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="link-proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def cut(self) -> None:
        """Reset every connection now, and every new one until `restore`; return when that is done."""
        is_done = threading.Event()
        for step in (self._cut, is_done.set):
            self._loop.call_soon_threadsafe(step)
        is_done.wait()

    def restore(self) -> None:
        """Forward normally again."""
        self.delay_s, self.rate_bytes_per_s, self.stalled = 0.0, None, False
        self.cut_after_bytes, self.is_cut = None, False

    def _serve(self) -> None:
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        self._cut()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def _cut(self) -> None:
        self.is_cut = True
        for writer in self._writers:
            # Without this, the other end would read a regular end of the stream.
            with contextlib.suppress(OSError):  # one that is closed already
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        pair = {writer, far_writer}
        self._writers |= pair
        try:
            await asyncio.gather(self._pass(reader, far_writer, counted=True), self._pass(far_reader, writer))
        finally:
            self._writers -= pair
            for each in pair:
                each.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool = False) -> None:
        """Read as fast as data arrives and write when it is due: a delay must not lower the rate."""
        due: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_QUEUED_CHUNKS)
        sender = asyncio.ensure_future(self._send(due, writer))
        passed = 0
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                passed += len(data) if counted else 0
                if self.cut_after_bytes is not None and passed >= self.cut_after_bytes:
                    self._cut()
                await due.put((self._loop.time() + self.delay_s, data))
        await due.put((self._loop.time() + self.delay_s, b""))
        await sender

    async def _send(self, due: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        moment, data = await due.get()
        while data:
            await asyncio.sleep(max(0.0, moment - self._loop.time()))
            while self.stalled:
                await asyncio.sleep(_POLL_S)
            if self.rate_bytes_per_s:
                await asyncio.sleep(len(data) / self.rate_bytes_per_s)
            with contextlib.suppress(OSError):  # keep emptying the queue, or the reader would block
                writer.write(data)
                await writer.drain()
            moment, data = await due.get()
        with contextlib.suppress(OSError):
            writer.write_eof()
