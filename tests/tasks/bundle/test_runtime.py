"""The name of a case states delegate, versions and options, and nothing else of it is taken for one."""

import duckdb
import pytest

from sql.schema import sql_files
from tasks.bundle.model_names import case_title
from tasks.bundle.runtime import (
    Runtime,
    base_model,
    case_name,
    only_delegate,
    parse_runtime,
    program_name,
    without_case,
    without_delegate,
    without_options,
    without_runtime,
    without_versions,
)

OPENVINO = "net@delegate=openvino+xnnpack,export=1.4.1,tg64,load=mmap"
OWN = "net@delegate=my_npu.parts:make,tg64"


@pytest.mark.parametrize(
    ("case", "runtime", "program", "measured"),
    [
        ("net", Runtime(), "net", "net"),
        ("net@tg64", Runtime(), "net@tg64", "net@tg64"),
        ("net@tg64,load=mmap", Runtime(options=(("load", "mmap"),)), "net@tg64", "net@tg64"),
        ("net@export=1.4.1,tg64", Runtime(export="1.4.1"), "net@export=1.4.1,tg64", "net@tg64"),
        ("net@export=1.5.0,runner=1.5.0", Runtime("1.5.0", "1.5.0"), "net@export=1.5.0", "net"),
        ("./a=b/net.py:make@tg64", Runtime(), "./a=b/net.py:make@tg64", "./a=b/net.py:make@tg64"),
        (
            OPENVINO,
            Runtime("1.4.1", None, (("load", "mmap"),), "openvino+xnnpack"),
            "net@delegate=openvino+xnnpack,export=1.4.1,tg64",
            "net@tg64",
        ),
        (OWN, Runtime(delegate="my_npu.parts:make"), OWN, "net@tg64"),
    ],
)
def test_the_name_of_a_case_states_delegate_versions_and_options(
    case: str, runtime: Runtime, program: str, measured: str
) -> None:
    assert parse_runtime(case) == runtime
    assert (program_name(case), without_runtime(case)) == (program, measured)
    assert case_name(program, runtime.of_run) == case
    assert base_model(case) == base_model(measured)


def test_the_title_of_a_case_has_its_delegate_in_words() -> None:
    cases = {
        OPENVINO: "net@export=1.4.1,tg64,load=mmap (OpenVINO + XNNPACK)",
        "net@delegate=portable": "net (portable)",
        "net@delegate=my_npu.parts:make": "net (my_npu.parts:make)",
        "net@load=mmap": "net@load=mmap",
        "net": "net",
    }
    assert {case: case_title(case) for case in cases} == cases


def test_each_kind_of_words_can_be_left_out_alone() -> None:
    assert without_delegate(OPENVINO) == "net@export=1.4.1,tg64,load=mmap"
    assert without_options(OPENVINO) == "net@delegate=openvino+xnnpack,export=1.4.1,tg64"
    assert without_versions(OPENVINO) == "net@delegate=openvino+xnnpack,tg64,load=mmap"
    assert only_delegate(OPENVINO) == "net@delegate=openvino+xnnpack,tg64"
    runtime = parse_runtime(OPENVINO)
    assert (runtime.of_program, runtime.of_versions) == (
        "delegate=openvino+xnnpack,export=1.4.1",
        "export=1.4.1,load=mmap",
    )


def test_sql_reads_the_words_of_a_case_as_python_does() -> None:
    cases = ["net", "net@tg64", "./a=b/net.py:make@tg64", "net@runner=1.5.0,load=mmap", OPENVINO, OWN]
    with duckdb.connect() as connection:
        for file in sql_files("macros"):
            if file.name in ("_case_words", "_delegate", "_runtime", "_without_case"):
                connection.execute(file.text)
        read = connection.execute(
            "SELECT _without_case(name), _runtime(name), _delegate(name) FROM (SELECT unnest(?) AS name)", [cases]
        ).fetchall()
    of_python = [(without_case(case), parse_runtime(case)) for case in cases]
    assert read == [
        (name, runtime.of_versions or "default", runtime.delegate or "xnnpack") for name, runtime in of_python
    ]
