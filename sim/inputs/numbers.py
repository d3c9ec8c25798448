"""Numbers, and short text, as users write them in YAML: booleans are never numbers, and `1e-3` is one.

YAML 1.1 reads `1e-3` as a string (it wants `1.0e-3`) and `on` as a boolean; both are settled here, once.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

MAX_REQUESTS = 10_000_000
MAX_DURATION_S = 1e8
MAX_SPECULATIVE_TOKENS = 64
MAX_TOKENS = 10_000_000
_EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a boolean is not a number")
    if isinstance(value, str):
        if not _EXPONENT.fullmatch(value):
            raise ValueError(f"{value!r} is text, not a number")
        return float(value)
    return value


_Number = BeforeValidator(_number)

Number = Annotated[float, _Number, Field(allow_inf_nan=False)]
Positive = Annotated[float, _Number, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, _Number, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, _Number, Field(ge=0, le=1, allow_inf_nan=False)]
Tokens = Annotated[int, _Number, Field(ge=1, le=MAX_TOKENS)]
TokensOrNone = Annotated[int, _Number, Field(ge=0, le=MAX_TOKENS)]
Count = Annotated[int, _Number, Field(ge=1, le=MAX_REQUESTS)]
DraftLength = Annotated[int, _Number, Field(ge=0, le=MAX_SPECULATIVE_TOKENS)]
Bytes = Annotated[float, _Number, Field(ge=0, allow_inf_nan=False)]

Text = Annotated[str, Field(min_length=1, max_length=1000)]
