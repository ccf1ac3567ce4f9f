"""The steps of CI: a summary always, one comment when something changed, and files are taken, never code."""

import html
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployments.ci import api
from deployments.ci import comment as step
from tests.fixtures.farm import Farm
from tests.fixtures.http_server import Quiet, serving
from tests.fixtures.paths import ROOT

CI = ROOT / "deployments" / "ci"
Comment = Callable[..., str]
SLOWER: dict[str, Any] = {
    "model": "voice", "precision": "fp32", "device": "host", "variant": "sme2_off", "threads": 1,
    "answer": "different", "in_words": "slower 12.3 % (10.1 to 14.8 %)", "ratio": 1.123, "low": 1.101, "high": 1.148,
    "is_regression": True, "cause": "`blocks.2` +1.2 ms", "commit_a": "4" * 40,
    "time_a_ms": 0.5, "time_b_ms": 0.5615, "sessions_a": 8, "sessions_b": 8,
    "pte_bytes_a": 1_000_000, "pte_bytes_b": 1_000_000, "peak_memory_bytes_a": 5e6, "peak_memory_bytes_b": 5e6,
}  # fmt: skip
FASTER = SLOWER | {"in_words": "faster 20.0 % (18.0 to 22.0 %)", "ratio": 0.8, "is_regression": False}
FASTER |= {"low": 0.78, "high": 0.82}
SAME = FASTER | {"answer": "same", "in_words": "not slower: at most 0.8 %", "ratio": 1.002, "cause": None}
SAME |= {"low": 0.997, "high": 1.008}
UNKNOWN = SAME | {"answer": "unknown", "in_words": "inconclusive: 14 more sessions of each side"}

# About 100 times the work of `linear`: a busy machine cannot hide it in five sessions.
MUCH = """
import torch

def make():
    return torch.nn.Linear(1024, 1024), (torch.randn(512, 1024),)
"""


class Job:
    """A job of CI on a pull request: its folder of answers, its summary, and a stand-in for the comments."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.out = folder / "out"
        self.out.mkdir()
        self.bodies: list[str] = []
        self.writes: list[str] = []
        self.tokens: set[str] = set()

    def answer(self, name: str, *rows: dict[str, Any]) -> None:
        (self.out / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")

    def note(self, file: str, text: str) -> None:
        (self.out / file).write_text(text, encoding="utf-8")

    @property
    def summary(self) -> str:
        return (self.folder / "summary.md").read_text(encoding="utf-8")


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    class Handler(Quiet):
        def do_GET(self) -> None:
            page = int(self.path.rpartition("page=")[2])
            of_pull_request.tokens.add(self.headers["Authorization"])
            everything = [{"id": number, "body": body} for number, body in enumerate(of_pull_request.bodies)]
            self.answer(200, json.dumps(everything[100 * (page - 1) : 100 * page]))

        def do_POST(self) -> None:
            of_pull_request.writes.append(self.command)
            number = len(of_pull_request.bodies) if self.command == "POST" else int(self.path.rpartition("/")[2])
            of_pull_request.bodies[number:] = [str(self.content()["body"]), *of_pull_request.bodies[number + 1 :]]
            self.answer(200, "{}")

        do_PATCH = do_POST

    with serving(Handler) as port:
        of_pull_request = Job(tmp_path, f"http://127.0.0.1:{port}/repos/o/r/issues/1/comments")
        yield of_pull_request


@pytest.fixture
def comment(job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Comment:
    """Run the step of the job, and return what it printed to standard error."""

    def run(url: str = job.url, code: int = 0) -> str:
        variables = {"ETFARM_COMMENTS": url, "ETFARM_TOKEN": "secret-token", "ETFARM_HEAD_SHA": "c" * 40}
        for name, value in (variables | {"GITHUB_STEP_SUMMARY": str(job.folder / "summary.md")}).items():
            monkeypatch.setenv(name, value)
        assert step.main(job.out) == code
        printed = capsys.readouterr()
        assert "secret-token" not in printed.out + printed.err
        return printed.err

    return run


def test_without_a_change_there_is_a_summary_and_no_comment(job: Job, comment: Comment) -> None:
    # given a program that is the same
    unchanged = "ears is the same program as before; it was not measured"
    job.note("ears.note", f"{unchanged}\n")
    comment()
    assert job.summary.startswith(f"**UNCHANGED: nothing was measured: {unchanged}**\n")
    # and cells without a change, without times, and on one side alone
    only_in_b = SAME | {"answer": "only in B", "in_words": None, "ratio": None, "time_a_ms": None, "device": "phone"}
    simulated = SAME | {"answer": None, "in_words": "simulated: no times", "ratio": None, "device": "made-up"}
    job.answer("voice.host", SAME, only_in_b, simulated)
    comment()
    assert "No series slower of 2; not slower: 1; simulated, without times: 1;" in job.summary
    assert "- only in B: voice fp32 on phone, " in job.summary
    assert (job.bodies, job.tokens) == ([], {"Bearer secret-token"})


@pytest.mark.parametrize(
    ("row", "code"), [(SAME | {"pte_bytes_b": 2}, 0), (SAME | {"answer": "inaccurate"}, 1), (FASTER, 0), (None, 3)]
)
def test_another_size_wrong_outputs_and_a_failed_comparison_are_worth_a_comment(
    job: Job, comment: Comment, row: dict[str, Any] | None, code: int
) -> None:
    job.answer("voice.host", *([row] if row else []))
    if row is None:
        job.note("voice.host.failed", "voice on host could not be compared: no answer")
    comment(code=code)
    assert len(job.bodies) == 1


def test_one_comment_is_made_for_a_change_and_updated_in_place_when_it_is_gone(job: Job, comment: Comment) -> None:
    # given 3100 comments of others; when a push is slower, and the next one repairs it
    job.bodies += [f"comment {number}" for number in range(3100)]
    for code, row, sentence in ((1, SLOWER, "**FAIL: voice"), (0, SAME, "**PASS: voice")):
        job.answer("voice.host", row)
        comment(code=code)
        # then the same comment states that
        assert (len(job.bodies), sentence in job.bodies[-1]) == (3101, True)
    assert job.writes == ["POST", "PATCH"]


def test_a_note_of_somebody_else_with_the_same_mark_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [{"id": name, "body": f"{step.MARK} PASS", "author": {"username": name}} for name in ("stranger", "bot")]
    monkeypatch.setattr(api, "call", lambda _, url: {"username": "bot"} if url.endswith("/v4/user") else notes)
    note = api.find_comment("https://gitlab.example.org/api/v4/projects/7/merge_requests/1/notes", step.MARK)
    assert note is not None
    assert note["id"] == "bot"


def test_the_answer_about_all_files_and_devices_is_in_the_first_line_and_the_rest_is_folded(
    job: Job, comment: Comment, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.answer("voice.host", SLOWER)
    much = {"device": "phone", "ratio": 1.5, "low": 1.48, "high": 1.52, "in_words": "slower 50.0 % (48.0 to 52.0 %)"}
    job.answer("voice.phone", SLOWER | much)
    job.answer("ears.host", FASTER | {"model": "ears", "pte_bytes_b": 800_000}, SAME, UNKNOWN)
    job.note("eyes.host.failed", "eyes on host could not be compared: /home/ci/eyes.pte: no such file")
    job.note("nose.note", "nose is the same program as before; it was not measured")
    monkeypatch.setenv("GITHUB_REPOSITORY", "o/r")
    comment(code=1)
    (body,) = job.bodies
    mark, first, counts, *rest = [line for line in body.splitlines() if line]
    assert mark == "<!-- etfarm compare -->"
    head, base = (f"[`{sha[:7]}`](https://github.com/o/r/commit/{sha})" for sha in ("c" * 40, "4" * 40))
    answer = "voice fp32 on phone +50.0 % (+48.0 to +52.0 %); 2 of 5 series fail"
    assert first == f"**FAIL: {answer}** \u00b7 {head} against {base}"
    assert counts == (
        "2 of 5 series slower: worst voice fp32 on phone, SME2 off, one thread, 50.0 % (48.0 to 52.0 %); "
        "faster: 1, at best ears fp32 on host, SME2 off, one thread, 20.0 % (18.0 to 22.0 %); not slower: 1; "
        "inconclusive: 1; not compared: 1; sessions: 40 of A, 40 of B"
    )
    folded = rest.index("<details><summary>2 without a change, and how it was measured</summary>")
    table = [line for line in rest[:folded] if line.startswith("| ")]
    assert [line.split(", ")[0].split(" on ")[1] for line in table[2:]] == ["phone", "host", "host"]
    assert "| 500 µs | 562 µs | slower 12.3 % (10.1 to 14.8 %) | <code>blocks.2</code> +1.2 ms |" in table[3]
    assert table[4].endswith("| 1 MB -> 800 kB (-20.0 %) |")
    assert "- eyes on host could not be compared: eyes.pte: no such file" in rest[:folded]
    assert any("inconclusive: 14 more sessions" in line for line in rest[folded:])
    assert any("nose is the same program" in line for line in rest[folded:])


def test_a_comment_has_at_most_60_lines_and_nothing_in_names_acts(job: Job, comment: Comment) -> None:
    hostile = (
        "@team <img src=x> | [x](http://x) `rm`\n# <!-- etfarm compare --> www.x.org GH-26 #26 __x__ \u202e\x1b[2J"
    )
    many = [SLOWER | {"model": hostile, "device": f"d{number}"} for number in range(200)]
    job.answer("a.b", *many, *(SAME | {"device": f"d{number}"} for number in range(200)))
    for number in range(50):
        job.note(f"{number}.note", hostile)
        job.note(f"{number}.failed", hostile)
    comment(code=1)
    (body,) = job.bodies
    assert len([line for line in body.splitlines() if line.strip()]) <= 60
    assert "185 more: see the files of the job" in body
    assert body.count("<!--") == 1
    acting = ("<img", "[x]", "`rm`", "@team", "http:", "www.", "GH-", "#26", "_x", "\u202e", "\x1b")
    assert not any(mark in body for mark in acting)
    # and what stands for such a mark is not beside what it would lead to
    assert not any(name in html.unescape(body) for name in ("www.", "GH-", "#26", "@team", "://"))


def test_a_comment_that_cannot_be_written_leaves_the_summary_and_the_step_needs_nothing_but_python(
    job: Job, comment: Comment
) -> None:
    job.answer("voice.host", SLOWER)
    words = [sys.executable, "-S", str(CI / "comment.py"), str(job.out)]  # -S: without installed packages
    ended = subprocess.run(words, env={}, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.partition(" +")[0]) == (1, "**FAIL: voice fp32 on host"), ended.stderr
    # and the token is sent over https alone
    url = "http://example.org/comments"
    assert comment(url, 1).startswith(f"the comment was not written: {url}?")
    assert "slower" in job.summary


def test_the_word_is_that_of_what_fail_on_lists_also_if_the_variable_is_empty_or_has_two_words(
    job: Job, comment: Comment, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.answer("voice.host", SLOWER, SAME | {"answer": "only in B", "in_words": None, "ratio": None})
    monkeypatch.setenv("ETFARM_FAIL_ON", "")
    comment(code=1)
    job.answer("voice.host", UNKNOWN)
    monkeypatch.setenv("ETFARM_FAIL_ON", "regression unknown")
    comment(code=1)
    assert "**FAIL: voice" in job.bodies[-1]


# Writes the answer about a pair as `etfarm compare` does, and its arguments.
COMPARE = """#!/bin/sh
echo "$*" >>"$PWD/arguments"
while [ "$#" -gt 0 ]; do
    case $1 in *.json) cp "$PWD/answer" "$1" ;; esac
    shift
done
"""


@pytest.mark.parametrize(
    ("files", "code", "first", "sentence"),
    [
        (("voice/model.pte", "eyes/model.pte"), 0, "**PASS: ", "ears is gone: the change has no such file"),
        (("voice/model.pte", "voice.pte"), 3, "**INCOMPLETE: voice is there twice", "ears is gone"),
        (("is the same program as before.pte",), 3, "**INCOMPLETE: nothing was measured", "is new: the baseline has"),
    ],
)
def test_a_file_that_no_baseline_has_hides_no_model_and_one_that_is_gone_is_stated(
    tmp_path: Path, files: tuple[str, ...], code: int, first: str, sentence: str
) -> None:
    for name in ("base/voice/model.pte", "base/ears/model.pte", *(f"head/{file}" for file in files)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    (tmp_path / "answer").write_text(json.dumps([SAME]), encoding="utf-8")
    (tmp_path / "etfarm").write_text(COMPARE, encoding="utf-8")
    (tmp_path / "etfarm").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{Path(sys.executable).parent}:/usr/bin:/bin", "ETFARM_DEVICES": "host"}
    environment |= {"ETFARM_BASE": "base", "ETFARM_HEAD": "head", "ETFARM_FAIL_ON": "regression unknown"}
    words = [str(CI / "compare.sh")]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.startswith(first)) == (code, True), (done.stdout, done.stderr)
    assert sentence in done.stdout
    if code == 0:
        assert "--fail-on regression --fail-on unknown" in (tmp_path / "arguments").read_text(encoding="utf-8")


def test_the_action_and_the_template_give_the_script_every_variable_that_it_needs() -> None:
    script = (CI / "compare.sh").read_text(encoding="utf-8")
    action = yaml.safe_load((CI / "action.yml").read_text(encoding="utf-8"))
    (step,) = action["runs"]["steps"]
    variables = set(step["env"])
    assert all(
        name in script + "".join(path.read_text(encoding="utf-8") for path in CI.glob("*.py")) for name in variables
    )
    assert {"ETFARM_BASE", "ETFARM_HEAD", "ETFARM_DEVICES"} <= variables
    template = yaml.safe_load((CI / "gitlab.yml").read_text(encoding="utf-8"))[".etfarm-compare"]
    assert template["script"][-1].endswith('compare.sh"')


def test_the_workflow_that_runs_a_forks_code_has_no_secret_and_the_one_with_a_token_takes_no_code() -> None:
    files = {path.stem: path.read_text(encoding="utf-8") for path in (CI / "github").glob("*.yml")}
    build, measure = (yaml.safe_load(files[f"models-{name}"]) for name in ("build", "measure"))
    # YAML reads the key `on` as true
    assert build[True] == "pull_request"
    assert build["permissions"] == {"contents": "read"}
    assert build["jobs"]["build"]["runs-on"] == "ubuntu-latest"
    assert not any(word in files["models-build"] for word in ("secrets.", "github.token", "pull_request_target"))
    assert measure[True] == {"workflow_run": {"workflows": [build["name"]], "types": ["completed"]}}
    steps = measure["jobs"]["measure"]["steps"]
    assert not any("checkout" in str(step.get("uses")) for step in steps)
    assert not any("${{" in step.get("run", "") for step in steps)  # a name of a branch would be executed
    # and the action has every input that the workflow gives
    (action,) = (step for step in steps if str(step.get("uses")).endswith("deployments/ci@main"))
    assert set(action["with"]) <= set(yaml.safe_load((CI / "action.yml").read_text(encoding="utf-8"))["inputs"])


def run_steps(farm: Farm, url: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(farm.folder),
        "ETFARM_DATA_DIR": str(farm.data_dir),
        "ETFARM_BASE": str(farm.folder / "base"),
        "ETFARM_HEAD": str(farm.folder / "head"),
        "ETFARM_DEVICES": "here",
        "ETFARM_INVENTORY": str(farm.inventory),
        "ETFARM_SESSIONS": "5",
        "ETFARM_COMMENTS": url,
        "GITHUB_STEP_SUMMARY": str(farm.folder / "summary.md"),
    }
    return subprocess.run(
        [str(CI / "compare.sh")], cwd=farm.folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.thorough
@pytest.mark.long
@pytest.mark.torch
def test_a_pull_request_that_makes_a_model_slower_fails_with_a_comment(farm: Farm, job: Job) -> None:
    pytest.importorskip("executorch", reason="exports and the runner need the export extra")
    # given a baseline, a change with much more to do, a new file, and a script that a fork put beside them
    folders = {side: farm.folder / side for side in ("base", "head")}
    for folder in folders.values():
        folder.mkdir()
    # and folders without a common file are a mistake, and no success
    nothing = run_steps(farm, job.url)
    assert nothing.returncode == 3
    assert "have no .pte file of the same name; nothing was compared" in nothing.stderr
    (farm.folder / "much.py").write_text(MUCH, encoding="utf-8")
    for side, model in (("base", "linear"), ("head", "./much.py:make")):
        exported = farm.run("model", "export", model)
        assert exported.returncode == 0, exported.stderr
        shutil.copytree(Path(exported.stdout.strip()), folders[side] / "voice")
    shutil.copy(folders["head"] / "voice" / "model.pte", folders["head"] / "new.pte")
    for folder in folders.values():
        shutil.copy(folders["head"] / "voice" / "model.pte", folder / "unchanged.pte")
    (folders["head"] / "model.py").write_text("raise SystemExit('a stranger runs')", encoding="utf-8")
    # when CI runs the steps in a clean shell
    done = run_steps(farm, job.url)
    # then the job fails, the comment has the answer first, and nothing of the change was executed but its programs
    assert done.returncode == 1, (done.stdout, done.stderr, job.bodies)
    (body,) = job.bodies
    assert body.splitlines()[1].startswith("**FAIL: voice fp32 on here +")
    assert "new is new" in body
    assert "unchanged is the same program as before; it was not measured" in body
    assert str(farm.folder) not in body
    assert "a stranger runs" not in done.stdout + done.stderr + body
    answers = farm.folder / "etfarm-answers"
    assert sorted(path.name for path in answers.iterdir() if path.suffix != ".log") == [
        "new.note", "unchanged.note",
        "voice.here.json", "voice.here.md", "voice.here.svg", "voice.here.xml",
    ]  # fmt: skip
