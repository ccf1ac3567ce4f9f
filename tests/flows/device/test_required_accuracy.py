"""The accuracy that a sweep file requires applies to all cases of its model, and to no other model."""

from flows.device.measure import required_accuracy
from tasks.measure.sweep_file import MeasurementSettings, SweepSpec


def test_each_case_of_an_entry_has_its_accuracy_and_no_other_model_has() -> None:
    models = [{"factory": "decoder_tiny", "accuracy": {"min_snr_db": 20, "top1": 0.99}}, "linear"]
    spec = SweepSpec.model_validate({"name": "a", "models": models})
    found = required_accuracy(spec, "decoder_tiny@decode")
    assert found is not None
    assert (found.min_snr_db, found.top1) == (20, 0.99)
    assert required_accuracy(spec, "linear") is None
    # and comparisons of two files state nothing
    assert required_accuracy(MeasurementSettings(), "decoder_tiny@decode") is None
    # and it travels to a lab with the sweep
    assert SweepSpec.model_validate_json(spec.model_dump_json()) == spec
