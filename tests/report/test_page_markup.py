"""Escaping: whatever a name holds, it stays text."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.report.page.markup import Cell, Html, html, script_json, table, tag

NASTY = st.text(alphabet=st.sampled_from("<>&\"'/!-scriptb \u2028\n{}%\\é"), max_size=40)


class Elements(HTMLParser):
    """Names of the elements and all text of a piece of HTML."""

    def __init__(self, source):
        super().__init__()
        self.names, self.text = [], ""
        self.feed(source)
        self.close()

    def handle_starttag(self, name, attributes):
        self.names.append(name)

    def handle_data(self, data):
        self.text += data


@given(NASTY)
def test_text_comes_back_as_it_was(text):
    found = Elements(tag("p", text, title=text))
    assert found.names == ["p"]
    assert found.text == text


@given(NASTY)
def test_data_in_a_script_is_the_data_and_ends_no_script(text):
    written = script_json({text: [text]})
    assert not set("<>&\u2028") & set(written)
    assert json.loads(written) == {text: [text]}


def test_no_number_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        script_json([float("nan")])


def test_html_is_not_escaped_twice_and_attributes_are_named_as_in_html():
    assert html(tag("i", "a<b")) == "<i>a&lt;b</i>"
    assert tag("input", data_key='"', hidden=True, class_="x", id=None) == '<input data-key="&quot;" hidden class="x">'
    assert isinstance(html("<"), Html)


def test_cells_with_dollars_carry_their_number():
    written = table(["", "a"], [("<row>", [Cell("0.5", "better", usd=0.5)])], "label")
    assert '<td class="better"><span data-usd="0.5">0.5</span></td>' in written
    assert "&lt;row&gt;" in written
