"""`specsim calibrate analytic`: a calibration from a GPU's datasheet and the dims in a config.json."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .output_file import refuse_output, write_output

if TYPE_CHECKING:
    from ..cost.analytic import AnalyticSetup
    from ..cost.devices import Device
    from ..inputs.errors import Problem
    from ..inputs.model_dims import LoadedModel

COMMAND = "specsim calibrate analytic"
MAX_GPUS = 1024


@click.command()
@click.option("--gpu", required=True, metavar="GPU", help="h100, h200, a100, l40s, l4, rtx4090 or b200.")
@click.option("--model", required=True, metavar="FILE", help="config.json of the target.")
@click.option("--draft-model", metavar="FILE", help="config.json of a draft model.")
@click.option("--eagle", is_flag=True, help="Draft with an EAGLE-type head.")
@click.option("--tensor-parallel", type=click.IntRange(1, MAX_GPUS), default=1, show_default=True, help="GPUs.")
@click.option("--dtype", type=click.Choice(["bf16", "fp16", "fp8"]), help="Of the target; by default the model's.")
@click.option("--name", help="Name of the calibration; by default from GPU and models.")
@click.option("--out", metavar="FILE", help="Write FILE instead of stdout.")
def analytic(
    gpu: str,
    model: str,
    draft_model: str | None,
    eagle: bool,
    tensor_parallel: int,
    dtype: str | None,
    name: str | None,
    out: str | None,
) -> str:
    """Compute what a step costs, with no GPU at hand, and print it as a calibration file.

    Nothing in it is measured: the file says what it assumes.
    """
    from ..cost.analytic import AnalyticSetup, analytic_calibration
    from ..report.calibration_json import calibration_json

    paths = [model] if draft_model is None else [model, draft_model]
    refuse_output(out, "--out", paths)
    device, loaded = _inputs(gpu, dtype, paths, eagle, tensor_parallel)
    target, target_name = loaded[0], _model_name(model, loaded[0])
    draft, draft_name = None, None
    if draft_model is not None:
        draft, draft_name = loaded[1].dims, _model_name(draft_model, loaded[1])
    dtype = dtype or ("fp16" if target.dims.torch_dtype == "float16" else "bf16")
    setup = AnalyticSetup(
        name=name or _name(gpu, target_name, "eagle" if eagle else draft_name, tensor_parallel, dtype),
        device=device,
        target_name=target_name,
        target=target.dims,
        date=_today(),
        draft="eagle" if eagle else draft,
        draft_name=f"EAGLE-type head for {target_name}" if eagle else draft_name,
        tensor_parallel=tensor_parallel,
        dtype=dtype,
    )
    _must_fit(setup, target)
    text = calibration_json(analytic_calibration(setup))
    return text if out is None else write_output(text, Path(out))


def _inputs(
    gpu: str, dtype: str | None, paths: list[str], eagle: bool, tensor_parallel: int
) -> tuple[Device, list[LoadedModel]]:
    """The GPU and the models. Raises InputError with everything that is wrong with any of them."""
    from ..inputs.errors import InputError

    device, problems = _device(gpu, dtype)
    if eagle and len(paths) > 1:
        what, rule = "stands beside --draft-model", "a calibration has one draft"
        problems.append(_problem("--eagle", what, rule, "leave one of them out"))
    loaded, more = _load(paths, tensor_parallel, dtype)
    if device is None or problems or more:
        raise InputError([*problems, *more])
    return device, loaded


def _device(gpu: str, dtype: str | None) -> tuple[Device | None, list[Problem]]:
    from ..cost.devices import DEVICES, device_key
    from ..inputs.wording import did_you_mean, listed, shown

    key = device_key(gpu)
    device = DEVICES.get(key)
    if device is None:
        rule, remedy = f"known are {listed(DEVICES)}", did_you_mean(key, DEVICES, "name one of them")
        return None, [_problem("--gpu", f"unknown GPU {shown(gpu)}", rule, remedy)]
    if dtype == "fp8" and device.fp8_tflop_per_s is None:
        what = f"{device.name} has no fp8 tensor cores"
        return device, [_problem("--dtype", what, "products run in the dtype of the weights", "use bf16 or fp16")]
    return device, []


def _load(paths: list[str], tensor_parallel: int, dtype: str | None) -> tuple[list[LoadedModel], list[Problem]]:
    """The models, or what is wrong with any of them."""
    from ..inputs.errors import InputError
    from ..inputs.model_dims import dtype_problems, load_model_dims, tensor_parallel_findings

    loaded: list[LoadedModel] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            one = load_model_dims(Path(path))
        except InputError as error:
            problems += error.problems
            continue
        loaded.append(one)
        problems += dtype_problems(one) if dtype is None else []
        problems += [one.problem(finding) for finding in tensor_parallel_findings(one.dims, tensor_parallel)]
    return loaded, problems


def _must_fit(setup: AnalyticSetup, target: LoadedModel) -> None:
    from ..cost.analytic import analytic_memory, unfit
    from ..inputs.errors import InputError, Problem

    defect = unfit(analytic_memory(setup))
    if defect is not None:
        raise InputError([Problem(target.source.file, 1, 1, "--gpu", *defect)])


def _model_name(path: str, model: LoadedModel) -> str:
    """The name that the file gives, else its own, else its folder's."""
    from ..inputs.wording import one_line

    given = model.source.data.get("_name_or_path")
    name = given.rstrip("/").rpartition("/")[2] if isinstance(given, str) else ""
    file = Path(path).resolve()
    return one_line(name or (file.parent.name if file.stem == "config" else file.stem) or "model", 100)


def _name(gpu: str, target: str, draft: str | None, tensor_parallel: int, dtype: str) -> str:
    from ..cost.devices import device_key

    size = f"tp{tensor_parallel}" if tensor_parallel > 1 else ""
    width = dtype if dtype == "fp8" else ""
    return "-".join(part for part in ("analytic", device_key(gpu), target, size, width, draft) if part).lower()


def _today() -> str:
    import datetime

    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _problem(field: str, what: str, rule: str, remedy: str) -> Problem:
    from ..inputs.errors import Problem

    return Problem(COMMAND, 1, 1, field, what, rule, remedy)
