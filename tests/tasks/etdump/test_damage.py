"""The ETDump reader on files that are incomplete, not ETDumps, or lie: one sentence, or columns, and nothing else."""

import os
import re
import struct
from pathlib import Path

import pytest

from tasks.etdump.reader import EtdumpError, read_etdump
from tests.fixtures.etdump_builder import (
    LOADING,
    ROOT_OFFSET_AT,
    Allocation,
    Nothing,
    Profile,
    Run,
    Writer,
    build_etdump,
    delegated,
    method,
)  # fmt: skip


def execution(start: int) -> Run:
    call = Profile("DELEGATE_CALL", start, start + 5, instruction=0)
    softmax = delegated("Softmax (NC, F32) #1", start, start + 4, 0)
    return Run([softmax, call, Allocation(1, 64), method(start, start + 9)])


WHOLE = build_etdump([LOADING, *map(execution, (10, 20, 30))])
LATE = Profile("x", start=2**63, end=2**63 + 1)


def refusal(data: bytes) -> str:
    with pytest.raises(EtdumpError) as caught:
        read_etdump(data, name="night/model.etdump")
    sentence = str(caught.value)
    assert sentence.startswith("night/model.etdump ")
    assert "\n" not in sentence
    return sentence.removeprefix("night/model.etdump ")


def with_word(at: int, value: int) -> bytes:
    return WHOLE[:at] + struct.pack("<I", value) + WHOLE[at + 4 :]


BAD_NAME_AT = WHOLE.index(b"DELEGATE_CALL\0")
(ROOT_AT,) = struct.unpack_from("<I", WHOLE, ROOT_OFFSET_AT)
ROOT_AT += ROOT_OFFSET_AT
VTABLE_AT = ROOT_AT - struct.unpack_from("<i", WHOLE, ROOT_AT)[0]
VTABLE_BYTES, TABLE_BYTES = struct.unpack_from("<HH", WHOLE, VTABLE_AT)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty; run the model again"),
        (WHOLE[:7], "is truncated: it has 7 bytes"),
        (WHOLE[:-1], f"is truncated: it has {len(WHOLE) - 1} of {len(WHOLE)} bytes; fetch it again"),
        (b"\x7fELF" + bytes(100), "is not an ETDump: bytes 8 to 11 are b'\\x00"),
        (WHOLE + WHOLE, f"is corrupted: it has {2 * len(WHOLE)} bytes"),
        (build_etdump([Run([Profile("x", start=2, end=1)])]), "ends before it starts"),
        (build_etdump([Run([Profile("x"), LATE])]), "event 1 ends before it starts"),
        (build_etdump([Run([Profile("x", end=2**62)] * 3)]), "the durations of its events add up to more than"),
        (build_etdump([Run([Nothing()])]), "not exactly one of"),
        (build_etdump([Run([Profile(b"\xff\xfe")])]), "is not text"),
        (WHOLE[: BAD_NAME_AT + 13] + b"S" + WHOLE[BAD_NAME_AT + 14 :], "does not end with a zero byte"),
        (with_word(BAD_NAME_AT - 4, 2**32 - 1), "the end of a name points to byte"),
        (with_word(BAD_NAME_AT - 4, len(WHOLE) - BAD_NAME_AT), f"the end of a name points to byte {len(WHOLE)} of"),
        (
            build_etdump([Run([Profile(number=number) for number in range(2049)])]),
            "it has 2049 different names, more than",
        ),
        (build_etdump([Run([Profile("x" * 4097)])]), "a name has 4097 bytes, more than 4096"),
        (with_word(VTABLE_AT, TABLE_BYTES << 16 | 0xFFFF), f"the vtable of the root points to byte {VTABLE_AT} of"),
        (with_word(VTABLE_AT, 0xFFFF << 16 | VTABLE_BYTES), f"the root points to byte {ROOT_AT} of"),
        (with_word(VTABLE_AT, 5 << 16 | VTABLE_BYTES), "of the root lies outside its table"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_is_not_a_complete_etdump_is_refused_in_one_sentence(data: bytes, words: str) -> None:
    assert words in refusal(data)


def test_a_missing_file_a_folder_and_a_pipe_without_a_writer_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(EtdumpError, match=re.escape(f"{tmp_path / 'gone.etdump'}: cannot be read (No such file")):
        read_etdump(tmp_path / "gone.etdump")
    os.mkfifo(tmp_path / "pipe.etdump")
    for path in (tmp_path, tmp_path / "pipe.etdump"):
        with pytest.raises(EtdumpError, match="is not a regular file"):
            read_etdump(path)


def test_a_large_foreign_file_is_refused_without_being_read(tmp_path: Path) -> None:
    # given a sparse file far larger than memory
    path = tmp_path / "disk.img"
    with path.open("wb") as file:
        file.truncate(2**37)
    with pytest.raises(EtdumpError, match="is not an ETDump"):
        read_etdump(path)


@pytest.mark.parametrize("runs", [30_000, 1])
def test_lists_that_only_together_exceed_the_file_are_refused_unread(runs: int) -> None:
    # given 30,000 runs that are all one run of 30,000 events in a small file, or one that lists one event as often
    writer = Writer()
    _, list_at = writer.table(ROOT_OFFSET_AT, [("I", 0), ("I", 0)])
    runs_at = writer.vector(list_at, runs)
    _, _, _, events_at = writer.table(runs_at[0], [None, None, None, ("I", 0)])
    writer.share(runs_at)
    references_at = writer.vector(events_at, 30_000)
    if runs == 1:
        writer.table(writer.table(references_at[0], [("I", 0)])[0], [])
        writer.share(references_at)
    # when it is read, then lengths give it away before anything is made of them
    words = "it lists 30000 events, more than fit" if runs == 1 else "its lengths add up to more than the file"
    assert words in refusal(writer.finish())
