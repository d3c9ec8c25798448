"""Dims of models that can be named instead of a config.json: public ones, and a tiny pair for a first try."""

from __future__ import annotations

from pathlib import Path

from .dims import Dims, eagle_head, read_config
from .errors import ProfileError

BUILTIN = {
    dims.name: dims
    for dims in (
        Dims("tiny-target", 256, 704, 4, 4, 2, 64, 8192),
        Dims("tiny-draft", 128, 352, 2, 2, 1, 64, 8192),
        Dims("smollm2-135m", 576, 1536, 30, 9, 3, 64, 49152),
        Dims("smollm2-360m", 960, 2560, 32, 15, 5, 64, 49152),
        Dims("qwen2.5-0.5b", 896, 4864, 24, 14, 2, 64, 151936),
        Dims("llama-3.2-1b", 2048, 8192, 16, 32, 8, 64, 128256),
        Dims("llama-3.1-8b", 4096, 14336, 32, 32, 8, 128, 128256, tied=False),
    )
}


def model(reference: str, option: str) -> Dims:
    """A built-in name or the path of a config.json. Raises ProfileError."""
    if reference in BUILTIN:
        return BUILTIN[reference]
    path = Path(reference)
    if not path.suffix and not path.exists():
        what, rule = f"{reference!r} is unknown", f"names are {', '.join(BUILTIN)}"
        raise ProfileError("specsim profile", option, what, rule, "name one of them or give a config.json")
    return read_config(path / "config.json" if path.is_dir() else path)


def draft_model(reference: str | None, target: Dims) -> Dims | None:
    """The draft: `eagle` for an EAGLE-type head of the target, `none` or None for no draft."""
    if reference in (None, "none"):
        return None
    draft = eagle_head(target) if reference == "eagle" else model(reference, "--draft")
    if draft.vocab != target.vocab:
        what = f"{draft.vocab} tokens beside the target's {target.vocab}"
        rule = "target and draft share a vocabulary"
        raise ProfileError("specsim profile", "--draft", what, rule, "choose another draft")
    return draft
