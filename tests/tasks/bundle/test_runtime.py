"""The name of a case states versions and options, and nothing else of it is taken for one."""

import pytest

from tasks.bundle.runtime import Runtime, base_model, case_name, parse_runtime, program_name, without_runtime


@pytest.mark.parametrize(
    ("case", "runtime", "program", "measured"),
    [
        ("net", Runtime(), "net", "net"),
        ("net@tg64", Runtime(), "net@tg64", "net@tg64"),
        ("net@tg64,load=mmap", Runtime(options=(("load", "mmap"),)), "net@tg64", "net@tg64"),
        ("net@export=1.4.1,tg64", Runtime(export="1.4.1"), "net@export=1.4.1,tg64", "net@tg64"),
        ("net@export=1.5.0,runner=1.5.0", Runtime("1.5.0", "1.5.0"), "net@export=1.5.0", "net"),
        ("./a=b/net.py:make@tg64", Runtime(), "./a=b/net.py:make@tg64", "./a=b/net.py:make@tg64"),
    ],
)
def test_the_name_of_a_case_states_versions_and_options(
    case: str, runtime: Runtime, program: str, measured: str
) -> None:
    assert parse_runtime(case) == runtime
    assert (program_name(case), without_runtime(case)) == (program, measured)
    assert case_name(program, runtime.of_run) == case
    assert base_model(case) == base_model(measured)
