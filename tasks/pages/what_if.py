"""The section on predictions: what a model would take if one thing changed, and what came of earlier predictions."""

from tasks.judge.operators.advice import HEAVY_SHARE
from tasks.pages.page import Block, Heading, Paragraph, Section
from tasks.results.measurements.what_if import predictions_in_words, read_what_ifs, record_in_words
from tasks.results.reader import Answers
from tasks.results.table import build_table
from tasks.results.text import ms_digits, rounded_percent

_EXPLAINED = (
    f"For operators over {rounded_percent(HEAVY_SHARE)} of the time. A portable operator is predicted from what the "
    "same rewrite gained where it was measured before and after, any other from the share of the roof that the others "
    "of its kind reach. The next night in which the operator has changed shows whether the prediction was right."
)


def what_if(answers: Answers) -> Section:
    """Return the predictions about the cells of a sweep, those that its cells came after, and the farm's record."""
    title = "What if"
    predictions, compared = read_what_ifs(answers)
    record = record_in_words(answers)
    if not predictions and not compared:
        nothing = "No operator over 5 % of the time has a measured pair, or peers with a known roof."
        return Section("what-if", title, [Paragraph(text) for text in (nothing, record) if text])
    blocks: list[Block] = [Paragraph(_EXPLAINED)]
    if predictions:
        blocks.append(build_table(predictions, digits=ms_digits(row.predicted_ms for row in predictions)))
    if compared:
        digits = ms_digits(row.predicted_ms for row in compared)
        blocks += [Heading("Predicted and measured"), build_table(compared, digits=digits)]
    blocks += [Paragraph(record)] if record else []
    return Section("what-if", title, blocks, list(predictions_in_words(predictions[:1])))
