"""HTML as text: everything that is not markup of ours is escaped, in one place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_VOID = {"input", "meta"}
_BREAKS_OUT = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


class Html(str):
    """Text that is HTML already; any other string is escaped where it enters a page."""

    __slots__ = ()


Content = str | float | None
Attributes = dict[str, str | bool | None]


def html(content: Content) -> Html:
    """Content as HTML."""
    if isinstance(content, Html):
        return content
    return Html("" if content is None else escape(str(content)))


def tag(name: str, *contents: Content, **attributes: str | bool | None) -> Html:
    """An element. Attributes: `data_key` is `data-key`, `class_` is `class`; True stands alone, None is left out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{name}{written}>" if name in _VOID else f"<{name}{written}>{joined(contents)}</{name}>")


def _attribute(key: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(value)}"'


def joined(contents: Iterable[Content], between: str = "") -> Html:
    """Contents one after the other."""
    return Html(between.join(html(content) for content in contents))


def script_json(data: Any) -> Html:
    """Data as JSON that cannot end its script element, whatever names it has. Raises ValueError for NaN."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return Html(text.translate(_BREAKS_OUT))


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table. usd: dollars that follow the price on the page. style: a class of the style sheet."""

    content: Content
    style: str = ""
    usd: float | None = None


Row = tuple[Content, Sequence[Content | Cell]]


def table(header: Sequence[Content], rows: Iterable[Row], label: str, chosen: int | None = None) -> Html:
    """A table that scrolls by itself where the page is narrow, by touch and by key. chosen: the row that stands out."""
    head = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in header)))
    lines = []
    for number, (name, cells) in enumerate(rows):
        line = [tag("th", name, scope="row"), *map(_cell, cells)]
        lines.append(tag("tr", *line, class_="chosen" if number == chosen else None))
    inner = tag("table", head, tag("tbody", *lines))
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=label)


def _cell(content: Content | Cell) -> Html:
    if not isinstance(content, Cell):
        return tag("td", content)
    shown = content.content
    if content.usd is not None:
        shown = tag("span", shown, data_usd=repr(float(content.usd)))
    return tag("td", shown, class_=content.style or None)


def details(summary: Content, *contents: Content, opened: bool = False) -> Html:
    """Contents that open by their summary."""
    return tag("details", tag("summary", summary), *contents, open=opened)
