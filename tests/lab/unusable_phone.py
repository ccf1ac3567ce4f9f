"""A phone that adb lists but cannot use: unauthorized, because nobody tapped Allow, or silent."""

import os
import socket
import struct
import threading
from types import TracebackType
from typing import Self

_HEADER = struct.Struct("<6I")  # command, two arguments, length, sum and complement of the command
_CONNECT, _AUTHENTICATE = (int.from_bytes(word, "little") for word in (b"CNXN", b"AUTH"))
_TOKEN, _SIGNATURE = 1, 2


class UnusablePhone:
    """Speaks just enough of adb's wire protocol to stay `unauthorized`, or `offline` if it is `silent`."""

    def __init__(self, *, silent: bool = False) -> None:
        self._silent = silent
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.serial = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while len(header := stream.read(_HEADER.size)) == _HEADER.size:
                command, kind, _, length, _, _ = _HEADER.unpack(header)
                stream.read(length)
                asks = command == _CONNECT or (command == _AUTHENTICATE and kind == _SIGNATURE)
                if asks and not self._silent:  # a public key gets no answer, as before Allow is tapped
                    connection.sendall(_message(_AUTHENTICATE, _TOKEN, os.urandom(20)))


def _message(command: int, argument: int, data: bytes) -> bytes:
    return _HEADER.pack(command, argument, 0, len(data), sum(data), command ^ 0xFFFFFFFF) + data
