"""Results as strict JSON text: null and never NaN, the same bytes on every locale."""

from __future__ import annotations

import json
from typing import Any


def json_text(document: dict[str, Any]) -> str:
    """The document as indented ASCII JSON, keys in their order, floats as Python's shortest repr, a newline at the end.

    A NaN or an infinity raises ValueError: results say null where there is no number.
    """
    return json.dumps(document, allow_nan=False, indent=2) + "\n"
