"""The app of a sweep's own server: where its garbage is collected."""

from tests.fixtures.command import run_python

# A finalizer that waits for the main thread, as that of a cursor does when another request waits for the database.
_PROGRAM = """
import gc, threading
from flows.server.app import create_app

create_app()
free = threading.Event()
collected = threading.Event()

class Cursor:
    def __init__(self):
        self.cycle = self
        self.ballast = [[] for _ in range(100)]

    def __del__(self):
        free.wait()
        collected.set()

Cursor()
garbage = [[[] for _ in range(10)] for _ in range(100_000)]  # many times what starts a collection
print("alive", collected.is_set(), flush=True)
free.set()
print("collected", collected.wait(), flush=True)
"""


def test_the_servers_main_thread_never_waits_for_the_finalizer_of_garbage() -> None:
    ended = run_python("-c", _PROGRAM)
    assert ended.stdout.splitlines() == ["alive False", "collected True"], ended.stderr
