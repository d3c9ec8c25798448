"""The command line: what goes to stdout and stderr, and which exit code says what. The simulation is a stand-in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import sim
from sim.cli.main import main
from sim.cli.one_line import one_line
from sim.inputs.errors import InputError, OutsideCalibrationError, Problem, SpecsimError

ROOT = Path(__file__).resolve().parents[2]
PROBLEM = Problem("a.yaml", 3, 7, "speculation.k", "unknown key", "keys are known", "did you mean x")
FIRST = Problem("a.yaml", 1, 1, "x", "y", "z", "w")
UGLY = Problem("a\n\x1b[1m.yaml", 1, 1, "x", "y\r\nz", "r", "s")


@pytest.fixture
def stand_in(monkeypatch):
    """Replaces the simulation by a function that notes its arguments, and answers or raises."""
    calls = SimpleNamespace(arguments=None, error=None, document={"warnings": ["no draft memory"], "seed": 1})

    def run_scenario(*arguments, keep_tables):
        calls.arguments, calls.keep_tables = arguments, keep_tables
        arguments[-1](1, 2, "baseline")
        if calls.error is not None:
            raise calls.error
        return SimpleNamespace(document=calls.document, tables=[])

    module = ModuleType("sim.answers.run")
    module.run_scenario = run_scenario
    monkeypatch.setitem(sys.modules, "sim.answers.run", module)
    return calls


def test_arguments_reach_the_simulation(stand_in, capsys):
    line = ["run", "a.yaml", "--set", "run.seed=2", "--set", "x=y", "--json", "--strict", "--jobs", "2"]
    assert main(line) == 0
    assert stand_in.arguments[:4] == (Path("a.yaml"), ("run.seed=2", "x=y"), 2, True)
    assert main(["run", "--json"]) == 0
    assert stand_in.arguments[:4] == (None, (), 1, False)


def test_json_alone_on_stdout_and_warnings_on_stderr(stand_in, capsys):
    assert main(["run", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == stand_in.document
    assert err == "warning: no draft memory\n"


def test_without_json_the_answer_is_printed(stand_in, capsys, monkeypatch):
    terminal = pytest.importorskip("sim.report.terminal")
    monkeypatch.setattr(terminal, "print_answer", lambda document, console: console.print(f"seed {document['seed']}"))
    assert main(["run"]) == 0
    assert capsys.readouterr() == ("seed 1\n", "")


def test_out_writes_the_files_and_still_answers(stand_in, capsys, tmp_path):
    stand_in.document |= {"scenario": {"workload": {"slices": []}}}
    assert main(["run", "--json", "--out", str(tmp_path / "run")]) == 0
    assert (tmp_path / "run" / "result.json").read_text("utf-8") == capsys.readouterr().out


def test_an_impossible_out_is_told_before_the_simulation_runs(stand_in, capsys, tmp_path):
    (tmp_path / "taken").touch()
    assert main(["run", "--json", "--out", str(tmp_path / "taken")]) == 2
    out, err = capsys.readouterr()
    assert (out, stand_in.arguments) == ("", None)
    assert "taken:1:1: --out: is a file, " in err


def test_a_timeline_is_written_beside_the_files_and_the_answer(stand_in, capsys, tmp_path):
    stand_in.document |= {"scenario": {"workload": {"slices": []}}, "specsim_version": "1"}
    out, timeline = tmp_path / "run", tmp_path / "run" / "timeline.json"
    assert main(["run", "--json", "--out", str(out), "--timeline", str(timeline)]) == 0
    answer, told = capsys.readouterr()
    assert {path.name: path.read_text("utf-8") for path in out.iterdir()}.pop("result.json") == answer
    assert json.loads(timeline.read_text("utf-8"))["traceEvents"] == []
    assert told.splitlines()[0].startswith(f"timeline: {timeline}: 0 steps, 0 requests, ")


def test_records_are_kept_only_where_they_are_written(stand_in, tmp_path):
    stand_in.document |= {"scenario": {"workload": {"slices": []}}, "specsim_version": "1"}
    kept = {}
    for options in ((), ("--timeline", "t.json"), ("--out", "run"), ("--out", "run", "--timeline", "t.json")):
        paths = [one if one.startswith("--") else str(tmp_path / one) for one in options]
        assert main(["run", "--json", *paths]) == 0
        kept[options[::2]] = stand_in.keep_tables
    every = sys.maxsize
    assert list(kept.values()) == [0, 1, every, every]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--timeline", ""], "--timeline: the file has no name, "),
        (["--timeline", "FOLDER"], ":1:1: --timeline: is no regular file, "),
        (["--timeline", "FOLDER/none/t.json"], ":1:1: --timeline: cannot be written (No such file or directory), "),
        (["--timeline", "FOLDER/result.json", "--out", "FOLDER"], "--timeline: is a file that the run reads or writes"),
        (["--timeline", "FOLDER/steps-a.csv", "--out", "FOLDER"], "--timeline: is a file that the run reads or writes"),
        (["FOLDER/a.yaml", "--timeline", "FOLDER/a.yaml"], "--timeline: is a file that the run reads or writes itself"),
        (["--timeline-window", "1:2"], "--timeline-window: there is no --timeline, "),
        *(
            (["--timeline", "FOLDER/t.json", "--timeline-window", text], "--timeline-window: '")
            for text in ("2:1", "1", "1:1", "-1:2", "a:2", "nan:2", "inf:", "1:2:3", "")
        ),
    ],
)
def test_an_impossible_timeline_is_told_before_the_simulation_runs(stand_in, capsys, tmp_path, options, says):
    (tmp_path / "a.yaml").touch()
    assert main(["run", "--json", *(one.replace("FOLDER", str(tmp_path)) for one in options)]) == 2
    out, err = capsys.readouterr()
    assert (out, stand_in.arguments, err.count("\n")) == ("", None, 1)
    assert says in err
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


@pytest.mark.parametrize(("text", "window"), [("1:2.5", (1, 2.5)), (":2", (0, 2)), ("3:", (3, float("inf")))])
def test_the_window_is_in_seconds(stand_in, monkeypatch, tmp_path, text, window):
    from sim.report import timeline_file

    asked = []
    monkeypatch.setattr(timeline_file, "write_timeline", lambda *arguments: asked.append(arguments[1:]))
    path = str(tmp_path / "t.json")
    assert main(["run", "--json", "--timeline", path, "--timeline-window", text]) == 0
    assert asked == [(path, window)]


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (InputError([PROBLEM, FIRST]), 2, ["a.yaml:1:1: x: y, z, w", str(PROBLEM)]),
        (InputError([UGLY]), 2, [r"a \x1b[1m.yaml:1:1: x: y z, r, s"]),
        (SpecsimError("cannot"), 2, ["cannot"]),
        (OutsideCalibrationError("batch 300 > 256"), 3, ["batch 300 > 256"]),
    ],
)
def test_what_a_user_can_mend_is_told_in_lines(stand_in, capsys, error, code, lines):
    stand_in.error = error
    assert main(["run", "--json"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == lines


def test_a_bug_keeps_its_traceback(stand_in):
    stand_in.error = ZeroDivisionError("bug")
    with pytest.raises(ZeroDivisionError):
        main(["run"])


def test_an_interrupt_is_quiet(stand_in, capsys):
    stand_in.error = KeyboardInterrupt()
    assert main(["run"]) == 130
    out, err = capsys.readouterr()
    assert out + err.strip() == ""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (["run", "--jsn"], "specsim run:1:1: --jsn: No such option"),
        (["rum"], "specsim:1:1: "),
        (["run", "--jobs", "0"], "specsim run:1:1: --jobs: 0 is not in the range"),
        (["run", "--jobs", "two"], "specsim run:1:1: --jobs: 'two' is not a valid"),
        (["run", "a.yaml", "b.yaml"], "specsim run:1:1: command line: Got unexpected extra argument (b.yaml)"),
        (["run", "--set"], "--set: Option '--set' requires an argument"),
        (["schema", "x"], "specsim schema:1:1: command line: Got unexpected extra argument (x)"),
    ],
)
def test_a_wrong_command_line_is_a_user_error_of_one_line(stand_in, capsys, line, says):
    assert main(line) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert says in err
    assert "--help`" in err or "did you mean" in err
    assert stand_in.arguments is None


@pytest.mark.parametrize("line", [[], ["--help"], ["-h"]])
def test_help_names_the_commands(capsys, line):
    assert main(line) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "run" in out
    assert "schema" in out


def test_help_of_run_names_every_option(capsys):
    assert main(["run", "--help"]) == 0
    out = capsys.readouterr().out
    for option in ("[SCENARIO]", "--set PATH=VALUE", "--json", "--out DIR", "--timeline FILE", "--strict", "--jobs"):
        assert option in out


def test_version(capsys, monkeypatch):
    monkeypatch.setattr(sim, "__version__", "1.2.3", raising=False)
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "specsim 1.2.3\n"


def test_schema_is_json(capsys):
    pytest.importorskip("sim.inputs.schema", reason="the schema has no module yet", exc_type=ImportError)
    assert main(["schema"]) == 0
    assert "properties" in json.loads(capsys.readouterr().out)


def test_progress_needs_a_terminal(capsys, monkeypatch):
    from sim.cli.progress import progress_on_stderr

    with progress_on_stderr() as report:
        report(1, 2, "baseline")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress_on_stderr() as report:
        report(1, 2, "baseline")
    out, err = capsys.readouterr()
    assert out == ""
    assert "baseline" in err


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break otherwise there")
@pytest.mark.parametrize("line", [[], ["--help"]], ids=["returned", "echoed"])
def test_a_reader_who_leaves_is_no_bug(line):
    code = f"import sys; from sim.cli.main import main; sys.exit(main({line}))"
    nobody_reads, stdout = os.pipe()
    os.close(nobody_reads)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(stdout)
    assert (done.returncode, done.stderr) == (141, b"")


def test_python_dash_m_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "sim", "run", "--nonsense"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("specsim run:1:1: --nonsense: ")


def test_one_line_escapes_what_a_terminal_would_obey():
    assert one_line("a\nb\tc\x1b[0m é") == r"a b\tc\x1b[0m é"
