"""The steps of CI: a summary always, one comment when there is something to say, and files are taken, never code."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fixtures.farm import Farm
from tests.fixtures.paths import ROOT

CI = ROOT / "deployments" / "ci"
SLOWER = {"answer": "different", "pte_bytes_a": 1, "pte_bytes_b": 1}
SAME = SLOWER | {"answer": "same"}


@dataclass
class Comments:
    """A stand-in of the comments of a pull request: a list of those that were made, and what was asked."""

    url: str
    bodies: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)


@pytest.fixture
def comments() -> Iterator[Comments]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self, content: Any) -> None:
            data = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def body(self) -> str:
            length = int(self.headers["Content-Length"])
            return str(json.loads(self.rfile.read(length))["body"])

        def do_GET(self) -> None:
            page = int(self.path.rpartition("page=")[2])
            found.calls.append("GET")
            found.tokens.add(self.headers["Authorization"])
            everything = [{"id": number, "body": body} for number, body in enumerate(found.bodies)]
            self.answer(everything[100 * (page - 1) : 100 * page])

        def do_POST(self) -> None:
            found.calls.append("POST")
            found.bodies.append(self.body())
            self.answer({})

        def do_PATCH(self) -> None:
            found.calls.append("PATCH")
            found.bodies[int(self.path.rpartition("/")[2])] = self.body()
            self.answer({})

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Comments(f"http://127.0.0.1:{server.server_port}/repos/o/r/issues/1/comments")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield found
    server.shutdown()
    server.server_close()


def answer(folder: Path, name: str, text: str, row: dict[str, Any] | None) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    if row:
        (folder / f"{name}.json").write_text(json.dumps([row]), encoding="utf-8")


def comment(folder: Path, url: str, summary: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "ETFARM_COMMENTS": url, "GITHUB_STEP_SUMMARY": str(summary)}
    environment |= {"ETFARM_TOKEN": "secret-token"}
    words = [sys.executable, str(CI / "comment.py"), str(folder)]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True)


def test_without_a_change_there_is_a_summary_and_no_comment(comments: Comments, tmp_path: Path) -> None:
    answer(tmp_path / "out", "voice.host", "**No series slower of 1.**", SAME)
    comment(tmp_path / "out", comments.url, tmp_path / "summary.md")
    assert "No series slower of 1" in (tmp_path / "summary.md").read_text()
    assert (comments.bodies, comments.tokens) == ([], {"Bearer secret-token"})


def test_one_comment_is_made_for_a_change_and_updated_in_place_when_it_is_gone(
    comments: Comments, tmp_path: Path
) -> None:
    # given 120 comments of others
    comments.bodies += [f"comment {number}" for number in range(120)]
    answer(tmp_path / "out", "voice.host", "**1 of 1 series slower**", SLOWER)
    comment(tmp_path / "out", comments.url, tmp_path / "summary.md")
    assert len(comments.bodies) == 121
    assert "1 of 1 series slower" in comments.bodies[-1]
    # when the next push repairs it
    answer(tmp_path / "out", "voice.host", "**No series slower of 1.**", SAME)
    comment(tmp_path / "out", comments.url, tmp_path / "summary.md")
    # then the same comment states that
    assert len(comments.bodies) == 121
    assert "No series slower of 1" in comments.bodies[-1]
    assert [call for call in comments.calls if call != "GET"] == ["POST", "PATCH"]


@pytest.mark.parametrize("row", [SAME | {"pte_bytes_b": 2}, SAME | {"answer": "inaccurate"}, None])
def test_a_smaller_file_wrong_outputs_and_a_failed_comparison_are_worth_a_comment(
    comments: Comments, tmp_path: Path, row: dict[str, Any] | None
) -> None:
    answer(tmp_path / "out", "voice.host", "**an answer**", row)
    comment(tmp_path / "out", comments.url, tmp_path / "summary.md")
    assert len(comments.bodies) == 1


def test_a_comment_that_cannot_be_written_leaves_the_summary_and_no_token_in_the_log(tmp_path: Path) -> None:
    answer(tmp_path / "out", "voice.host", "**1 of 1 series slower**", SLOWER)
    done = comment(tmp_path / "out", "http://example.org/comments", tmp_path / "summary.md")
    assert done.stderr.startswith(
        "the comment was not written: http://example.org/comments?per_page=100&page=1 is not an https URL"
    )
    assert "secret-token" not in done.stdout + done.stderr
    assert "slower" in (tmp_path / "summary.md").read_text()


def test_the_action_and_the_template_give_the_script_every_variable_that_it_needs() -> None:
    script = (CI / "compare.sh").read_text(encoding="utf-8")
    action = yaml.safe_load((CI / "action.yml").read_text(encoding="utf-8"))
    (step,) = action["runs"]["steps"]
    given = set(step["env"])
    assert all(name in script + (CI / "comment.py").read_text(encoding="utf-8") for name in given)
    assert {"ETFARM_BASE", "ETFARM_HEAD", "ETFARM_DEVICES"} <= given
    template = yaml.safe_load((CI / "gitlab.yml").read_text(encoding="utf-8"))[".etfarm-compare"]
    assert template["script"][-1].endswith('compare.sh"')


def run_steps(farm: Farm, head: Path, base: Path, url: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(farm.folder),
        "ETFARM_VAR": str(farm.var),
        "ETFARM_BASE": str(base),
        "ETFARM_HEAD": str(head),
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
@pytest.mark.torch
def test_a_pull_request_that_makes_a_model_slower_fails_and_is_told_so(farm: Farm, comments: Comments) -> None:
    pytest.importorskip("executorch", reason="exports and the runner need the export extra")
    # given a baseline, a change with much more to do, a new file, and a script that a fork put beside them
    folders = {side: farm.folder / side for side in ("base", "head")}
    for side, model in (("base", "linear"), ("head", "conv")):
        folders[side].mkdir()
        exported = farm.run("model", "export", model)
        assert exported.returncode == 0, exported.stderr
        shutil.copy(Path(exported.stdout.strip()) / "model.pte", folders[side] / "voice.pte")
    shutil.copy(folders["head"] / "voice.pte", folders["head"] / "new.pte")
    for folder in folders.values():
        shutil.copy(folders["head"] / "voice.pte", folder / "unchanged.pte")
    (folders["head"] / "model.py").write_text("raise SystemExit('a stranger runs')", encoding="utf-8")
    # when CI runs the steps in a clean shell
    done = run_steps(farm, folders["head"], folders["base"], comments.url)
    # then the job fails, the comment has the answer first, and nothing of the change was executed but its programs
    assert done.returncode == 1, done.stdout + done.stderr
    (body,) = comments.bodies
    assert "1 of 1 series slower" in body
    assert "new is new" in body
    assert "unchanged is the same program as before; it was not measured" in body
    assert str(farm.folder) not in body
    assert "a stranger runs" not in done.stdout + done.stderr + body
    answers = farm.folder / "etfarm-answers"
    assert sorted(path.name for path in answers.iterdir() if path.suffix != ".log") == [
        "new.md", "unchanged.json", "unchanged.md",
        "voice.here.json", "voice.here.md", "voice.here.svg", "voice.here.xml",
    ]  # fmt: skip


@pytest.mark.thorough
def test_folders_without_a_common_file_are_a_mistake_that_is_told(farm: Farm, comments: Comments) -> None:
    for side in ("base", "head"):
        (farm.folder / side).mkdir()
    done = run_steps(farm, farm.folder / "head", farm.folder / "base", comments.url)
    assert done.returncode == 2
    assert "have no .pte file of the same name; nothing was compared" in done.stderr
