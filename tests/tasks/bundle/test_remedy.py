"""What to do about a session, by its reason code."""

import re

from devices import errors
from tasks.bundle.remedy import remedy
from tasks.measure.session.record import error_code
from tests.fixtures.paths import ROOT


def test_every_reason_that_a_session_may_end_with_has_a_remedy_of_its_own() -> None:
    # given the codes that sessions are recorded with, and those of errors of devices
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tasks/measure/session").glob("*.py")]
    codes = {code for text in sources for code in re.findall(r'Unsuccessful\(\s*"\w+", "(\w+)"', text)}
    assert len(codes) > 15
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.DeviceError)]
    codes |= {error_code(kind.__new__(kind)) for kind in kinds if kind is not errors.DeviceError}
    # then none is answered with what is said of an unknown one
    assert {code for code in codes if remedy(code) == remedy(None)} == set()
