"""Tables on a terminal: nothing is wider than it, and what is not shown is named."""

from datetime import date

from tasks.pages.answer_table import answer_table, table_lines
from tasks.pages.terminal_table import fit
from tasks.results.table import Cell, Column, Table
from tasks.results.text import Text, Toned, split_text, wrap_text

NAMES = ("model", "device", "kernel", "runs", "time_ms", "low_ms", "high_ms", "verdict", "cell", "note")
KERNEL = "xnn_f32_gemm_minmax_ukernel_6x8"
ROWS = [
    (f"model_{number}", "pixel", KERNEL, 30, 8.8503 + number, 7.5539, 13.0122, "regression", f"{number:016x}", None)
    for number in range(3)
]


def lines_of(lines: list[Text]) -> list[str]:
    return ["".join(split_text(line)) for line in lines]


def test_a_table_is_as_wide_as_the_terminal_and_states_what_it_leaves_out() -> None:
    lines = lines_of([*table_lines(NAMES, [ROWS], 60)])
    assert max(map(len, lines)) <= 60
    # what all rows share is in a line above, the verdict, the figure and its interval stay, and the others are named
    caption, titles = " ".join(" ".join(lines[:3]).split()), next(line for line in lines if line.startswith("model "))
    shared = f"device pixel; kernel {KERNEL}; runs 30; low_ms 7.6; high_ms 13.0; verdict regression; no note"
    assert (caption, titles.split()) == (f"all 3 rows: {shared}", ["model", "time_ms", "cell"])
    lines = lines_of([*table_lines(NAMES, [ROWS], 24)])
    assert (max(map(len, lines[4:])), lines[-2:]) == (24, ["  all): cell", "(3 rows)"])


def test_a_pipe_and_wide_have_all_columns_and_a_line_for_each_row_of_every_block() -> None:
    head, _, *rows, count = lines_of([*table_lines(NAMES, [ROWS, ROWS])])
    assert (head.split(), len(rows), count) == ([*NAMES], 6, "(6 rows)")
    assert rows[0].split() == ["model_0", "pixel", KERNEL, "30", "8.9", "7.6", "13.0", "regression", f"{0:016x}"]


def test_one_row_that_is_too_wide_has_a_line_for_each_column() -> None:
    lines = lines_of([*table_lines(NAMES, [ROWS[:1]], 40)])
    assert max(map(len, lines)) <= 40
    assert "time_ms  8.9" in lines


def test_columns_of_a_higher_priority_stay_and_words_break_into_lines() -> None:
    columns = [Column("a"), Column("b", "ms", numeric=True, priority=1), Column("c")]
    rows = [[Cell(f"{'word ' * 12}{number}"), Cell(str(number)), Cell("x" * 20 + str(number))] for number in range(2)]
    fitted = fit(Table(columns, rows), 40)
    assert lines_of([*fitted.tail]) == ["not shown (--wide shows all): c"]
    assert lines_of([*fitted.rows[1]]) == ["word word word word word word word     1", "word word word word word 1"]


def test_a_result_has_the_tone_of_its_word_and_a_foreign_text_none() -> None:
    table = answer_table(
        ("verdict", "model"), [("regression", "regression"), ("improvement", "x"), ("new", "\x1b[31m")]
    )
    assert [[cell.tone for cell in row] for row in table.rows] == [["bad", ""], ["good", ""], ["", ""]]
    (line, *_) = fit(table, 40).rows[0]
    assert [part for part in line if isinstance(part, Toned)] == ["regression "]
    assert table.rows[2][1].text == "\ufffd[31m"


def test_numbers_have_the_digits_of_their_interval_or_four() -> None:
    names = ("ratio", "low", "high", "share", "bytes", "night")
    (row,) = answer_table(names, [(1.0412345, 1.0312345, 1.0512345, 0.1234567, 123456.7, date(2026, 11, 1))]).rows
    assert [cell.text for cell in row] == ["1.041", "1.031", "1.051", "0.1235", "123457", "2026-11-01"]
    # and so have numbers that no measurement gives
    (row,) = answer_table(("time_ms", "low_ms", "high_ms", "x"), [(1e300, -1.7e308, 1.7e308, float("nan"))]).rows
    assert [cell.text for cell in row] == ["1e+300", "-1.7e+308", "1.7e+308", "nan"]
    (row,) = answer_table(("time_ms", "low_ms", "high_ms"), [(1.0, -1.7e308, 1.7e308)]).rows
    assert row[0].text == "1"


def test_a_command_and_a_path_stay_on_one_line() -> None:
    text = "run `etfarm compare a b --fail-on regression` or open /a/very/long/path/of/a/report.html"
    assert wrap_text(text, 20) == [
        *("run", "  `etfarm compare a b --fail-on regression`"),
        *("  or open", "  /a/very/long/path/of/a/report.html"),
    ]


def test_a_long_text_is_whole_in_a_pipe_and_a_terminal_cuts_it_after_three_lines_and_says_so() -> None:
    long_text = "word " * 60
    rows = [(number, f"{long_text}{number}") for number in range(2)]
    assert all(long_text in line for line in lines_of([*table_lines(("n", "reason"), [rows])])[2:4])
    # given a terminal, the text gets all that the other column leaves
    *lines, note, count = lines_of([*table_lines(("n", "reason"), [rows], 100)])
    assert (max(map(len, lines)), len(lines[2:])) == (100, 6)
    assert (note, count) == ("cut (--wide shows all): reason", "(2 rows)")
    # and one row has it whole
    one = lines_of([*table_lines(("reason",), [[rows[0][1:]]], 40)])
    assert " ".join(one).count("word") == 60


def test_a_wide_character_takes_two_columns_and_a_text_of_them_breaks_between_any_two() -> None:
    columns, texts = [Column("model"), Column("ms", numeric=True)], ("模型一", "toy", f"a{'型' * 30}")
    table = Table(columns, [[Cell(text), Cell(str(number))] for number, text in enumerate(texts)])
    _, _, *lines = lines_of([*fit(table, 30).lines()])
    assert lines[:2] == ["模型一" + " " * 23 + "0", "toy" + " " * 26 + "1"]
    assert lines[2:] == ["a" + "型" * 12 + "    2", "型" * 13, "型" * 5]
    assert lines_of([*fit(table, None).lines()])[3:] == ["toy" + " " * 60 + "1", f"a{'型' * 30}   2"]
    # and what all rows share, and a single row, have it, too
    shared = Table(columns, [[Cell("模型一"), Cell("0")], [Cell("模型一"), Cell("1")]])
    assert lines_of([*fit(shared, 40).head])[0] == "all 2 rows: model 模型一"
    one = Table([Column("名")], [[Cell("型" * 20)]])
    assert lines_of([*fit(one, 34).lines()])[2:] == ["column  名", "value   " + "型" * 13, " " * 8 + "型" * 7]
