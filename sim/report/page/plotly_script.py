"""The drawing library of the page, from the installed plotly package."""

from __future__ import annotations

from ...inputs.errors import InputError, Problem

_ENDS_SCRIPT = ("</script", "<!--")  # what would end or change the script element


def plotly_script() -> str:
    """plotly.js as text. Raises InputError where the package is missing."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        rule = "the figures are drawn by plotly, which the extra [plot] brings"
        remedy = "install plotly in this environment"
        what = "plotly is not installed"
        raise InputError([Problem("specsim report", 1, 1, "plotly", what, rule, remedy)]) from None
    text: str = get_plotlyjs()
    lowered = text.lower()
    for sign in _ENDS_SCRIPT:
        if sign in lowered:
            what = f"the installed plotly.js holds {sign!r}"
            rule, remedy = "it stands inside a script element", "install another version of plotly"
            raise InputError([Problem("specsim report", 1, 1, "plotly", what, rule, remedy)])
    return text.replace("\r\n", "\n").replace("\r", "\n")
