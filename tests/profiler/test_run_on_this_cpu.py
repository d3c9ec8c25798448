"""The whole line on this CPU, with tiny models: run, kill, resume, fit, check, simulate. No times are asserted."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profiler.box import supervised
from profiler.store import read_points

ROOT = Path(__file__).resolve().parents[2]
PAIR = ["--preset", "smoke"]


def specsim(*arguments, folder, check=True):
    command = [sys.executable, "-c", "from sim.cli.main import main; raise SystemExit(main())", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=280, check=check
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A smoke run that was killed after some points and then run to its end."""
    folder = tmp_path_factory.mktemp("smoke")
    code = "import sys; sys.argv[0] = 'specsim'; from sim.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "profile", "run", "--device", "cpu", *PAIR, "--out", str(folder)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
    path, deadline = folder / "points.jsonl", time.monotonic() + 120
    while time.monotonic() < deadline and (not path.exists() or path.read_bytes().count(b"\n") < 6):
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    before = path.read_bytes()
    assert 5 <= before.count(b"\n") < 30
    done = specsim("profile", "run", "--device", "cpu", *PAIR, "--out", str(folder), folder=folder)
    whole = before[: before.rindex(b"\n") + 1]
    assert path.read_bytes().startswith(whole)  # what was measured is not measured again
    measured = int(done.stdout.split()[0])
    assert measured == path.read_bytes().count(b"\n") - whole.count(b"\n")
    return folder


def test_nothing_is_measured_twice_and_nothing_is_missing(folder):
    rows = read_points(folder).rows
    assert len({row.key for row in rows}) == len(rows)
    assert {row.status for row in rows} == {"ok"}
    again = specsim("profile", "run", "--device", "cpu", *PAIR, "--out", str(folder), folder=folder)
    assert again.stdout.startswith("0 points measured")


def test_the_points_become_a_calibration_that_the_simulator_runs(folder):
    fitted = specsim("profile", "fit", str(folder), folder=folder)
    path = folder / "calibration.json"
    assert f"specsim run --set calibration={path}" in fitted.stdout
    stored = json.loads(path.read_text())
    assert stored["kind"] == "measured"
    assert stored["hardware"]["gpu"].startswith("CPU ")
    assert {"additivity", "live", "repeatability"} <= set(stored["heldout"]["folds"])
    shown = specsim("calibrate", "show", str(path), folder=folder)
    assert "held out, error in %" in shown.stdout
    checked = specsim("profile", "check", str(folder), folder=folder)
    assert "live 4q4s64 eager" in checked.stdout
    assert "Floor: a second measurement" in checked.stdout
    run = specsim(
        "run",
        "--json",
        f"--set=calibration={path}",
        "--set=workload.requests=4",
        "--set=run.replications=1",
        folder=folder,
    )
    assert json.loads(run.stdout)["calibration"]["kind"] == "measured"


def test_noise_cannot_make_a_fit_without_its_points(folder, tmp_path):
    lines = (folder / "points.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "points.jsonl").write_text("".join(line for line in lines if '"phase": "head"' not in line))
    done = specsim("profile", "fit", str(tmp_path), folder=tmp_path, check=False)
    assert done.returncode == 2
    assert "head: was not measured" in done.stderr
    assert not (tmp_path / "calibration.json").exists()


def test_a_lost_child_is_started_again_until_the_work_is_done(tmp_path):
    script = tmp_path / "child.py"
    script.write_text(
        "import pathlib, sys\n"
        f"path = pathlib.Path({str(tmp_path / 'points.jsonl')!r})\n"
        "lines = path.read_text() if path.exists() else ''\n"
        "path.write_text(lines + 'x\\n')\n"
        "sys.exit(0 if lines.count('x') == 2 else 75)\n"
    )
    assert supervised([sys.executable, str(script)], tmp_path) == 0
    assert (tmp_path / "points.jsonl").read_text().count("x") == 3


def test_a_child_that_makes_no_progress_ends_the_run(tmp_path):
    command = [sys.executable, "-c", "import sys; sys.exit(9)"]
    (tmp_path / "points.jsonl").write_text("")
    assert supervised(command, tmp_path) == 9
