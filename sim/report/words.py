"""Words that the terminal and the page share."""

from __future__ import annotations

EFFECTS = {
    "gains": "gains from speculation",
    "loses": "loses from speculation",
    "is a trade": "a trade with speculation",
    "same": "no difference shown",
}
MARGINAL_COLUMNS = ("P(committed)", "adds, ms", "saves, ms", "pays")
