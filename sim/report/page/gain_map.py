"""How a map of gains and losses is drawn."""

from __future__ import annotations

from .figure import Json


def map_style() -> Json:
    """A heat map of logarithms of ratios, its colours as far apart for losses as for gains."""
    return {
        "type": "heatmap",
        "colorscale": [[0, "@loss"], [0.5, "@even"], [1, "@gain"]],
        "showscale": False,
        "texttemplate": "%{text}",
        "textfont": {"color": "@ink"},
        "hovertemplate": "%{text}<extra></extra>",
        "xgap": 2,
        "ygap": 2,
    }
