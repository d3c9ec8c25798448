"""Check data against a model, and say every complaint in our words: where, what, the rule, the remedy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from .known_keys import NOT_SUPPORTED_YET, keys_of, models_at
from .source import Finding
from .wording import closest, did_you_mean, listed, shown

M = TypeVar("M", bound=BaseModel)
Words = tuple[str, str, str]

MOST_FINDINGS = 200  # more would only slow the answer down: nobody reads them
_PERCENT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")


def validated(model: type[M], data: Any) -> tuple[M | None, list[Finding]]:
    """The model, or None and everything that is wrong with the data."""
    try:
        return model.model_validate(data), []
    except ValidationError as error:
        details: list[Any] = error.errors(include_url=False)
        return None, [_finding(detail, model, data) for detail in details[:MOST_FINDINGS]]


def _finding(detail: dict[str, Any], model: type[BaseModel], data: Any) -> Finding:
    kind = detail["type"]
    path = _path_in_data(detail["loc"], data, kind in ("missing", "extra_forbidden"))
    if kind == "extra_forbidden":
        return Finding(_dotted(path), *_unknown_key(path, model, data), at_key=True)
    if kind == "union_tag_invalid":
        path.append(_tag_key(detail))
    words = _unsupported(path, detail["input"]) or _WORDS.get(kind, _any_other)(detail)
    return Finding(_dotted(path), *words)


def _path_in_data(loc: tuple[str | int, ...], data: Any, last_is_key: bool) -> list[str | int]:
    """Drop the names of union members, which are in no file."""
    path: list[str | int] = []
    here = data
    for depth, part in enumerate(loc):
        inside = (isinstance(here, dict) and part in here) or (isinstance(here, list) and isinstance(part, int))
        if inside:
            here = here[part]
        if inside or (last_is_key and depth == len(loc) - 1):
            path.append(part)
    return path


def _dotted(path: list[str | int]) -> str:
    return ".".join(str(part) for part in path) or "file"


def _generic(path: list[str | int]) -> str:
    return ".".join(part for part in path if isinstance(part, str))


def _unknown_key(path: list[str | int], model: type[BaseModel], data: Any) -> Words:
    key = str(path[-1])
    later = NOT_SUPPORTED_YET.get(_generic(path))
    if later:
        return f"{key!r} is not supported yet", "this version does not know it", later
    known = keys_of(models_at(model, path[:-1], data))
    remedy = did_you_mean(key, known, "remove it")
    if ":" in key:
        remedy = "put a space after the colon"
    elif "." in key:
        remedy = "write the parts as nested mappings"
    return f"unknown key {shown(key)}", f"known are {listed(known)}", remedy


def _unsupported(path: list[str | int], value: Any) -> Words | None:
    if isinstance(value, dict):
        value = value.get("kind")
    later = NOT_SUPPORTED_YET.get(f"{_generic(path)}={value}")
    return (f"{value!r} is not supported yet", "this version does not know it", later) if later else None


def _missing(detail: dict[str, Any]) -> Words:
    key = detail["loc"][-1]
    return "is missing", f"{key} has no default", f"add `{key}: …`"


def _quoted_words(text: str) -> list[str]:
    return re.findall(r"'([^']*)'", text)


def _literal(detail: dict[str, Any]) -> Words:
    known = _quoted_words(detail["ctx"]["expected"])
    remedy = did_you_mean(detail["input"], known, f"write {known[0]}")
    return f"{shown(detail['input'])} is unknown", f"known are {listed(known)}", remedy


def _tag_key(detail: dict[str, Any]) -> str:
    """The key that says which form a mapping has: `kind`, or `form` for the costs of a calibration."""
    return _quoted_words(detail["ctx"]["discriminator"])[0]


def _unknown_kind(detail: dict[str, Any]) -> Words:
    known, key = _quoted_words(detail["ctx"]["expected_tags"]), _tag_key(detail)
    tag = detail["input"].get(key)
    return f"{key} {shown(tag)} is unknown", f"known are {listed(known)}", did_you_mean(tag, known, f"write {known[0]}")


def _no_kind(detail: dict[str, Any]) -> Words:
    key = _tag_key(detail)
    rule, remedy = f"the {key} says which keys follow", f"add `{key}: …`"
    keys = detail["input"] if isinstance(detail["input"], dict) else {}
    if any(":" in one for one in keys):
        return f"has no {key}", rule, "put a space after the colon"
    near = closest(key, keys)
    return f"has no {key}", rule, f"write {key} for {near!r}" if near else remedy


def _bound(words: str, key: str) -> Callable[[dict[str, Any]], Words]:
    def bound(detail: dict[str, Any]) -> Words:
        value, limit = detail["input"], detail["ctx"][key]
        if isinstance(value, float) and not math.isfinite(value):
            return _wanted("a finite number")(detail)
        remedy = f"give a number that is {words} {limit}"
        if key == "le" and limit == 1 and isinstance(value, int | float):
            remedy = f"for {value:g} percent write {value / 100:g}"
        return f"{shown(value)} is out of range", f"must be {words} {limit}", remedy

    return bound


def _wanted(form: str) -> Callable[[dict[str, Any]], Words]:
    def wanted(detail: dict[str, Any]) -> Words:
        value = detail["input"]
        remedy = f"give {form}"
        if value is None:
            return "has no value", f"must be {form}", "remove the key or give it a value"
        if form == "text" and isinstance(value, bool | int | float):
            remedy = f'put it in quotes: "{shown(value)}"'
        return f"{shown(value)} is not {form}", f"must be {form}", remedy

    return wanted


def _by_hand(detail: dict[str, Any]) -> Words:
    """A value that our own validators refused: a boolean or text where a number is wanted, or no boolean."""
    value = detail["input"]
    if "neither true nor false" in detail["msg"]:
        return f"{shown(value)} is neither true nor false", "must be true or false", "write true or false"
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if percent:
        remedy = f"write {percent[1]}, or {float(percent[1]) / 100:g} where a fraction is wanted"
        return f"{shown(value)} is text", "must be a number", remedy
    what = f"{shown(value)} is {'a boolean' if isinstance(value, bool) else 'text'}"
    return what, "must be a number", "give a plain number in decimal digits"


def _length(detail: dict[str, Any]) -> Words:
    context = detail["ctx"]
    limit = f"at least {context['min_length']}" if "min_length" in context else f"at most {context['max_length']}"
    what = "is too short" if "min_length" in context else "is too long"
    unit = "characters" if detail["type"].startswith("string") else "entries"
    return what, f"must have {limit} {unit}", f"give {limit} {unit}"


def _too_large(detail: dict[str, Any]) -> Words:
    return f"{shown(detail['input'])} is out of range", "whole numbers have at most 18 digits", "give a smaller number"


def _any_other(detail: dict[str, Any]) -> Words:
    return f"{shown(detail['input'])} does not fit", str(detail["msg"]), "correct the value"


_WORDS: dict[str, Callable[[dict[str, Any]], Words]] = {
    "missing": _missing,
    "literal_error": _literal,
    "union_tag_invalid": _unknown_kind,
    "union_tag_not_found": _no_kind,
    "greater_than": _bound("above", "gt"),
    "greater_than_equal": _bound("at least", "ge"),
    "less_than": _bound("below", "lt"),
    "less_than_equal": _bound("at most", "le"),
    "finite_number": _wanted("a finite number"),
    "int_type": _wanted("a whole number"),
    "int_from_float": _wanted("a whole number"),
    "int_parsing_size": _too_large,
    "float_type": _wanted("a number"),
    "string_type": _wanted("text"),
    "list_type": _wanted("a list"),
    "dict_type": _wanted("a mapping"),
    "model_type": _wanted("a mapping"),
    "model_attributes_type": _wanted("a mapping"),
    "value_error": _by_hand,
    "too_short": _length,
    "too_long": _length,
    "string_too_short": _length,
    "string_too_long": _length,
}
