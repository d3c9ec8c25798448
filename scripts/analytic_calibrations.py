"""Write the analytic calibrations that are shipped, from the dims in tests/data/model_configs.

`python scripts/analytic_calibrations.py` writes the files, `--check` only compares and exits 1 where they differ.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sim.cost.analytic import AnalyticSetup, analytic_calibration
from sim.cost.devices import DEVICES
from sim.inputs.model_dims import ModelDims, load_model_dims
from sim.report.calibration_json import calibration_json

ROOT = Path(__file__).resolve().parents[1]
DATE = "2026-11-30"  # of the formulas and assumptions, so that the same code writes the same bytes


def shipped_setups() -> list[AnalyticSetup]:
    """What is shipped."""
    small, large, sparse = "Llama-3.1-8B", "Llama-3.3-70B", "Qwen3-30B-A3B"
    setups = []
    for gpu in ("h100", "h200", "a100", "l40s"):
        setups += [_setup(gpu, small, "Llama-3.2-1B", "draft-1b"), _setup(gpu, small, "eagle", "eagle")]
    setups.append(_setup("h100", large, "Llama-3.2-1B", "tp4-draft-1b", 4))
    setups.append(_setup("h100", large, small, "tp4-draft-8b", 4))
    setups += [_setup("h100", sparse, None, ""), _setup("h100", sparse, "eagle", "eagle")]
    return setups


def _setup(gpu: str, target: str, draft: str | None, suffix: str, tensor_parallel: int = 1) -> AnalyticSetup:
    name = "-".join(part for part in ("analytic", gpu, target.lower(), suffix) if part)
    is_model = draft not in (None, "eagle")
    return AnalyticSetup(
        name=name,
        device=DEVICES[gpu],
        target_name=target,
        target=_dims(target),
        date=DATE,
        draft=_dims(draft) if is_model and draft else draft,
        draft_name=f"EAGLE-type head for {target}" if draft == "eagle" else draft,
        tensor_parallel=tensor_parallel,
    )


def _dims(model: str) -> ModelDims:
    return load_model_dims(ROOT / "tests" / "data" / "model_configs" / f"{model.lower()}.json").dims


def main(arguments: list[str]) -> int:
    """Write or check the files; returns the exit code."""
    code = 0
    for setup in shipped_setups():
        path = ROOT / "calibrations" / f"{setup.name}.json"
        text = calibration_json(analytic_calibration(setup))
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(
                f"calibrations/{path.name} is out of date: run python scripts/analytic_calibrations.py", file=sys.stderr
            )
            code = 1
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
