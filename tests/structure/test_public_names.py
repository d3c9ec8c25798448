"""`import sim` offers the names in `sim.__all__`."""

from __future__ import annotations

import sim


def test_every_public_name_can_be_imported():
    assert sim.__all__
    assert len(set(sim.__all__)) == len(sim.__all__)
    missing = [name for name in sim.__all__ if not hasattr(sim, name)]
    assert missing == []


def test_public_names_are_public():
    assert [name for name in sim.__all__ if name.startswith("_") and name != "__version__"] == []
