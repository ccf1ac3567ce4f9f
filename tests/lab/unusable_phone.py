"""A phone that adb lists but cannot use: unauthorized, because nobody tapped Allow, or silent."""

import os
import socketserver
import struct
import threading
from typing import Self

_HEADER = struct.Struct("<6I")  # command, two arguments, length, sum and complement of the command
_CONNECT, _AUTHENTICATE = (int.from_bytes(word, "little") for word in (b"CNXN", b"AUTH"))
_TOKEN, _SIGNATURE = 1, 2


class UnusablePhone(socketserver.ThreadingTCPServer):
    """Speaks just enough of adb's wire protocol to stay `unauthorized`, or `offline` if it is `silent`."""

    daemon_threads = True

    def __init__(self, *, silent: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.is_silent = silent
        self.serial = f"127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Connection(socketserver.StreamRequestHandler):
    server: UnusablePhone

    def handle(self) -> None:
        while len(header := self.rfile.read(_HEADER.size)) == _HEADER.size:
            command, kind, _, length, _, _ = _HEADER.unpack(header)
            self.rfile.read(length)
            asks = command == _CONNECT or (command == _AUTHENTICATE and kind == _SIGNATURE)
            if asks and not self.server.is_silent:  # a public key gets no answer, as before Allow is tapped
                self.wfile.write(_message(_AUTHENTICATE, _TOKEN, os.urandom(20)))


def _message(command: int, argument: int, data: bytes) -> bytes:
    return _HEADER.pack(command, argument, 0, len(data), sum(data), command ^ 0xFFFFFFFF) + data
