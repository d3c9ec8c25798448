"""A figure of the page: traces and a layout as Plotly reads them, and what the controls exchange in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from .markup import Html, tag

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Control:
    """Something that the reader picks: a name in the page's data, a label, and options in their order."""

    name: str
    label: str
    options: Sequence[str]
    first: int = 0

    def html(self) -> Html:
        """A list to pick from; nothing where there is nothing to pick."""
        if len(self.options) < 2:
            return tag("input", type="hidden", data_control=self.name, value="0")
        options = [
            tag("option", text, value=str(index), selected=index == self.first)
            for index, text in enumerate(self.options)
        ]
        return tag("label", self.label, tag("select", *options, data_control=self.name, autocomplete="off"))


@dataclass(frozen=True, slots=True)
class View:
    """What a choice shows: one entry for each trace of the figure, None where it has none, and its own layout.

    usd_axis: `x` or `y` where that axis follows the price.
    """

    traces: Sequence[Json | None]
    layout: Json = field(default_factory=dict)
    usd_axis: str | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. keys: names of the controls that choose among its views; views: by their indices, `0|2`.

    summary: what it shows, for those who cannot see it. traces, layout: what all views share; a colour is `@name`, a
    variable of the style sheet.
    """

    name: str
    summary: str
    traces: Sequence[Json]
    layout: Json
    views: Mapping[str, View]
    keys: Sequence[str] = ()
    note: str = ""
    value_label: str = ""

    def data(self) -> Json:
        """The figure as the page's script reads it."""
        return {
            "id": f"figure-{self.name}",
            "keys": list(self.keys),
            "traces": list(self.traces),
            "layout": self.layout,
            "views": {
                key: {"traces": list(view.traces), "layout": view.layout, "usd_axis": view.usd_axis}
                for key, view in self.views.items()
            },
            "value_label": self.value_label,
        }

    def html(self, *controls: Control) -> Html:
        """The place of the figure, its own controls above it, its numbers as a table below it."""
        name = f"figure-{self.name}"
        height = self.layout.get("height", 380)
        return tag(
            "figure",
            tag("div", *(control.html() for control in controls), class_="controls"),
            tag("div", class_="plot", id=name, role="img", aria_label=self.summary, style=f"min-height:{height}px"),
            tag("p", "No numbers for this choice.", class_="empty", id=f"{name}-empty", hidden=True),
            tag("figcaption", self.note) if self.note else "",
            tag(
                "details",
                tag("summary", "Numbers of this figure"),
                tag("div", class_="scroll", tabindex="0", role="region", aria_label=f"Numbers: {self.summary}"),
                class_="figure-numbers",
                id=f"{name}-numbers",
            ),
        )


def choices(*sizes: int) -> list[tuple[int, ...]]:
    """Every choice of controls with so many options each."""
    return list(product(*(range(size) for size in sizes)))


def view_key(choice: Sequence[int]) -> str:
    """The name of a choice among the views."""
    return "|".join(map(str, choice))


def between(value: float, interval: Sequence[float] | None) -> tuple[float, float]:
    """How far an interval reaches above and below a value; (0, 0) where there is none."""
    return (0.0, 0.0) if interval is None else (interval[1] - value, value - interval[0])


def error_bars(values: Sequence[float | None], intervals: Sequence[Sequence[float] | None]) -> Json:
    """Plotly's error bars for intervals around values; hidden where no value has one."""
    reach = [
        (None, None) if value is None or interval is None else between(value, interval)
        for value, interval in zip(values, intervals, strict=True)
    ]
    return {
        "type": "data",
        "symmetric": False,
        "array": [above for above, _ in reach],
        "arrayminus": [below for _, below in reach],
        "visible": any(above is not None for above, _ in reach),
    }


def category_axis(labels: Sequence[str], **options: Any) -> Json:
    """An axis with a text at 0, 1, 2, ..: names of users may be alike, be numbers, or hold markup."""
    ticks = {"tickvals": list(range(len(labels))), "ticktext": [shortened(label) for label in labels]}
    return {**ticks, "zeroline": False, **options}


def shortened(label: str, length: int = 26) -> str:
    """A label that leaves room for the figure."""
    return label if len(label) <= length else label[: length - 1] + "…"


def usd_axis(title: str) -> Json:
    """An axis of dollars from 0, small ones without an exponent."""
    return axis(title, rangemode="tozero", tickformat="~g")


def axis(title: str, **options: Any) -> Json:
    """An axis with a title."""
    return {"title": {"text": title}, **options}
