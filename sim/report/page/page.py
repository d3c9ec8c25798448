"""The whole page from its parts: one file with style, figures, data and the drawing library in it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from .definitions import glossary, popovers
from .figure import Control, Figure
from .markup import Html, details, joined, script_json, tag

DOCTYPE = "<!DOCTYPE html>\n"
NO_SCRIPT = "The figures and controls need JavaScript, the tables do not."


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says. controls: picks for the whole page. usd_per_gpu_hour: the result's price, if it has one."""

    title: str
    answer: str
    facts: str
    sections: Sequence[Html]
    figures: Sequence[Figure]
    warnings: Sequence[str]
    scenario: str
    controls: Sequence[Control] = ()
    usd_per_gpu_hour: float | None = None
    notes: Sequence[str] = field(default=())


def section(title: str, *contents: Html | str) -> Html:
    """A part of the page under a heading."""
    return tag("section", tag("h2", title), *contents)


def page_html(page: Page, plotly: str) -> str:
    """The page as the text of its file, the same for the same result and the same plotly."""
    script = _asset("page.js")
    head = joined(
        (
            tag("meta", charset="utf-8"),
            tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", http_equiv="Content-Security-Policy", content=_policy(plotly, script)),
            tag("title", page.title),
            tag("style", Html(_asset("page.css"))),
        ),
        "\n",
    )
    data: dict[str, Any] = {
        "figures": [figure.data() for figure in page.figures],
        "usd_per_gpu_hour": page.usd_per_gpu_hour,
    }
    body = joined(
        (
            tag("header", tag("h1", page.title), tag("p", page.answer, class_="answer")),
            tag("p", page.facts, class_="facts"),
            tag("noscript", tag("p", NO_SCRIPT, class_="empty")),
            tag("div", *(control.html() for control in page.controls), _price(page), class_="pick"),
            tag("main", *page.sections, _caveats(page), _scenario(page), section("Words", glossary())),
            popovers(),
            tag("script", script_json(data), type="application/json", id="page-data"),
            tag("script", Html(plotly)),
            tag("script", Html(script)),
        ),
        "\n",
    )
    return DOCTYPE + tag("html", tag("head", head), "\n", tag("body", body), lang="en") + "\n"


def _policy(*scripts: str) -> str:
    """Nothing is loaded, and no script runs but these."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "form-action 'none'; base-uri 'none'"
    )


def _price(page: Page) -> Html:
    if page.usd_per_gpu_hour is None:
        return Html("")
    price = f"{page.usd_per_gpu_hour:g}"
    box = tag("input", id="price", type="number", min="0", step="any", value=price, autocomplete="off")
    return tag("label", "$ per GPU-hour", box)


def _caveats(page: Page) -> Html:
    if not page.warnings and not page.notes:
        return Html("")
    lines = [tag("li", line) for line in page.warnings]
    return section("What to keep in mind", tag("ul", *lines, class_="warnings"), *(tag("p", n) for n in page.notes))


def _scenario(page: Page) -> Html:
    return section("Scenario", details("As it was run, defaults written down", tag("pre", page.scenario)))


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text("utf-8")
