"""Which keys a model knows at a place of the data: for "did you mean", and for what a later version will know."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

Model = type[BaseModel]

# Words of the engines that this version refuses, and what to do instead. Keys carry no list indices.
NOT_SUPPORTED_YET = {
    "workload.slices.acceptance.kind=ngram": "use per_position, fitted on the log of an n-gram drafter",
    "workload.slices.acceptance.kind=replay": "use per_position with the log's conditional rates",
    "workload.slices.acceptance.kind=named": "write the profile out as per_position",
    "speculation.method=ngram_gpu": "use ngram, with the costs of a look-up on the GPU",
    "speculation.method=dflash": "use draft_model, eagle, eagle3 or mtp",
    "speculation.method=dspark": "use draft_model, eagle, eagle3 or mtp",
    "speculation.parallel_drafting": "leave it out: drafts are made one after another",
    "speculation.moe_backend": "leave it out: it changes nothing here",
    "speculation.max_model_len": "leave it out: the draft reaches as far as the target",
    "speculation.enforce_eager": "leave it out: costs come from the calibration",
    "engine.style=trtllm": "use vllm, sglang or fixed_batch",
    "engine.style=llamacpp": "use vllm, sglang or fixed_batch",
    "engine.enable_mixed_chunk": "leave it out: prefill batches run alone",
    "engine.tensor_parallel_size": "use a calibration measured at that size",
}


def models_at(root: Model, path: list[str | int], data: Any) -> list[Model]:
    """The models that describe the mapping at a path; where the data says which (`kind`), only that one."""
    models, here = [root], data
    for part in path:
        if isinstance(part, int):
            here = here[part]
            continue
        found: list[Model] = []
        for model in models:
            for name, info in model.model_fields.items():
                if part in (name, info.alias):
                    found += _models_in(info.annotation)
        here = here[part]
        models = _chosen(found, here)
    return _chosen(models, here)


def keys_of(models: list[Model]) -> list[str]:
    """Every key the models know, as written in files."""
    names = [info.alias or name for model in models for name, info in model.model_fields.items()]
    return list(dict.fromkeys(names))


def _models_in(annotation: Any) -> list[Model]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def _chosen(models: list[Model], data: Any) -> list[Model]:
    kind = data.get("kind") if isinstance(data, dict) else None
    return [model for model in models if kind in _kinds(model)] or models


def _kinds(model: Model) -> tuple[Any, ...]:
    info = model.model_fields.get("kind")
    return get_args(info.annotation) if info and get_origin(info.annotation) is Literal else ()
