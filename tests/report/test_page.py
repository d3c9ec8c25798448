"""The page as a file: what is in it, what is not, and that it is the same every time."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from documents import paying
from page_results import (
    HOSTILE,
    SCENARIO,
    capacity_document,
    run_result,
    sweep_document,
    tune_document,
    write_document,
    write_run_with_tables,
)

from sim.report.number_text import number_text
from sim.report.page.draft_figures import conditional
from sim.report.page.effect_figure import ratio_axis
from sim.report.page.figure import error_bars
from sim.report.page.sweep_grid import gain
from sim.report.page.write import write_page
from sim.report.sentence import answer_sentence

pytest.importorskip("plotly", reason="plotly, of the extra [plot], is not installed")
MAKERS = {"sweep": sweep_document, "tune": tune_document, "capacity": capacity_document}


class Parsed(HTMLParser):
    """Elements with attributes, and the text of scripts by their id."""

    def __init__(self, source):
        super().__init__()
        self.elements, self.scripts, self._in, self.text = [], {}, None, []
        self.feed(source)

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        self._in = dict(attributes).get("id", str(len(self.scripts))) if name == "script" else None

    def handle_data(self, data):
        if self._in is not None:
            self.scripts[self._in] = self.scripts.get(self._in, "") + data
        else:
            self.text.append(data)

    def handle_endtag(self, name):
        self._in = None

    @property
    def data(self):
        return json.loads(self.scripts["page-data"])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """One result of each kind, by kind."""
    folder = tmp_path_factory.mktemp("results")
    made = {kind: write_document(folder / kind, f"{kind}.json", make(folder / kind)) for kind, make in MAKERS.items()}
    return {"run": write_run_with_tables(folder / "run"), **made}


@pytest.fixture(scope="module")
def pages(results):
    """The text of each page, by kind."""
    return {kind: write_page(path).read_text("utf-8") for kind, path in results.items()}


KINDS = ["run", "sweep", "tune", "capacity"]


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_users_are_text_and_nothing_else(pages, kind):
    page = Parsed(pages[kind])
    names = {name for name, _ in page.elements}
    assert not names & {"img", "b", "link", "iframe", "object"}
    assert len([name for name, _ in page.elements if name == "script"]) == 3
    assert HOSTILE not in pages[kind]
    if kind != "capacity":  # its numbers are of the whole workload
        assert any(HOSTILE in text for text in page.text)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_loaded_and_only_our_scripts_run(pages, kind):
    page = Parsed(pages[kind])
    assert not [a for _, a in page.elements if "src" in a or "href" in a or any(key.startswith("on") for key in a)]
    [policy] = [a["content"] for name, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    allowed = re.findall(r"'sha256-([^']+)'", policy)
    ours = [text for key, text in page.scripts.items() if key != "page-data"]
    assert allowed == [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in ours]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_result_gives_the_same_bytes(results, pages, kind, tmp_path):
    again = write_page(results[kind], tmp_path / "again.html")
    assert again.read_text("utf-8") == pages[kind]
    assert [path.name for path in tmp_path.iterdir()] == ["again.html"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_view_of_every_figure_fits_its_traces(pages, kind):
    page = Parsed(pages[kind])
    controls = {a["data-control"] for _, a in page.elements if "data-control" in a}
    figures = page.data["figures"]
    assert len({figure["id"] for figure in figures}) == len(figures) > 1
    for figure in figures:
        assert set(figure["keys"]) <= controls
        assert figure["views"]
        for view in figure["views"].values():
            assert len(view["traces"]) == len(figure["traces"])
            assert any(view["traces"])
    panels = [a for _, a in page.elements if "data-panel" in a]
    assert all(set(a["data-panel"].split()) <= controls for a in panels)


def test_a_run_shows_its_answer_its_tables_and_its_figures(results, pages):
    document = json.loads((results["run"] / "result.json").read_text("utf-8"))
    page = Parsed(pages["run"])
    assert answer_sentence(document) in "".join(page.text)
    shown = {figure["id"].removeprefix("figure-") for figure in page.data["figures"]}
    assert shown == {"effect", "phases", "ttft", "latency", "marginal", "time", "cost"}
    for name in ("baseline", "speculative"):
        assert number_text(document["arms"][name]["mean_tpot_ms"]) in page.text
    assert all(warning in page.text for warning in document["warnings"])


def test_intervals_are_drawn_where_the_result_has_them(results, pages):
    document = json.loads((results["run"] / "result.json").read_text("utf-8"))
    [figure] = [one for one in Parsed(pages["run"]).data["figures"] if one["id"] == "figure-cost"]
    [trace] = figure["views"]["0|0"]["traces"]
    for place, name in enumerate(("baseline", "speculative")):
        low, high = document["arms"][name]["ci"]["usd_per_successful_task"]
        value = document["arms"][name]["cost"]["usd_per_successful_task"]
        assert trace["y"][place] == value
        assert trace["error_y"]["array"][place] == pytest.approx(high - value)
        assert trace["error_y"]["arrayminus"][place] == pytest.approx(value - low)


def test_phases_sum_to_the_latency_of_a_mean_request(results, pages):
    document = json.loads((results["run"] / "result.json").read_text("utf-8"))
    [figure] = [one for one in Parsed(pages["run"]).data["figures"] if one["id"] == "figure-phases"]
    view = figure["views"]["0"]
    labels = view["layout"]["yaxis"]["ticktext"]
    sums = [sum(trace["x"][place] for trace in view["traces"]) for place in range(len(labels))]
    assert sums[labels.index("all: baseline")] == pytest.approx(document["arms"]["baseline"]["mean_e2el_ms"])
    prose = document["arms"]["speculative"]["slices"]["prose"]["mean_e2el_ms"]
    assert sums[labels.index("prose: speculative")] == pytest.approx(prose)


def variants(tmp_path):
    one_slice = json.loads(json.dumps(SCENARIO))
    one_slice["workload"]["slices"] = one_slice["workload"]["slices"][1:] and [
        {**one_slice["workload"]["slices"][1], "share": 1.0}
    ]
    plain = json.loads(json.dumps(one_slice))
    del plain["speculation"]
    free = {key: value for key, value in one_slice.items() if key not in ("price", "slo")}
    schedule = {"speculation.num_speculative_tokens_per_batch_size": "[[1, 2, 3], [3, 64, 0]]"}
    yield "one replication", run_result(tmp_path / "a", ["run.replications=1"])
    yield "one slice", run_result(tmp_path / "b", scenario=one_slice)
    yield "no speculation", run_result(tmp_path / "c", scenario=plain)
    yield "no price, no SLO", run_result(tmp_path / "d", scenario=free)
    yield "a schedule", run_result(tmp_path / "e", [f"{key}={value}" for key, value in schedule.items()])
    yield "k = 0", run_result(tmp_path / "f", ["speculation.num_speculative_tokens=0"])
    yield (
        "overload",
        run_result(tmp_path / "g", ["workload.arrivals={kind: poisson, rate: 500}", "workload.requests=400"]),
    )
    arms = "arms={k1: {speculation.num_speculative_tokens: 1}, k5: {speculation.num_speculative_tokens: 5}}"
    yield "several arms", run_result(tmp_path / "h", [arms])
    yield (
        "one token",
        run_result(tmp_path / "i", ["workload.slices.0.output_tokens=1", "workload.slices.1.output_tokens=1"]),
    )


def test_every_kind_of_run_has_a_page(tmp_path):
    seen = set()
    for name, result in variants(tmp_path):
        seen.add(name)
        document = result.document
        page = Parsed(write_page(write_document(tmp_path / name, "result.json", document)).read_text("utf-8"))
        shown = {figure["id"].removeprefix("figure-") for figure in page.data["figures"]}
        assert ("effect" in shown) == bool(document["comparison"]) or name == "one token", name
        assert ("cost" in shown) == ("price" in document["scenario"]), name
        assert ("lengths" in shown) == any(arm["draft_length"] for arm in document["arms"].values()), name
        assert (page.data["usd_per_gpu_hour"] is None) == ("price" not in document["scenario"]), name
    assert len(seen) == 9


def test_a_document_made_by_hand_has_a_page(tmp_path):
    path = write_document(tmp_path, "result.json", paying())
    assert "Speculation pays" in write_page(path).read_text("utf-8")


def test_conditional_acceptance_multiplies_to_the_unconditional():
    assert conditional([0.8, 0.4, 0.0, 0.0]) == [0.8, 0.5, 0.0, None]


def test_error_bars_are_asymmetric_and_hidden_without_intervals():
    bars = error_bars([2.0, None, 3.0], [(1.0, 5.0), None, None])
    assert bars["array"] == [3.0, None, None]
    assert bars["arrayminus"] == [1.0, None, None]
    assert error_bars([1.0], [None])["visible"] is False


def test_the_axis_of_ratios_holds_them_and_no_interval_drowns_them():
    bars = error_bars([0.8, None, 1.25], [(0.7, 0.9), None, (0.001, 90.0)])
    low, high = ratio_axis("", [{"x": [0.8, None, 1.25], "error_x": bars}, None], "x")["range"]
    assert 0.3 < 10**low < 0.7
    assert 1.25 < 10**high < 3.5
    low, high = ratio_axis("", [{"y": [1.5], "error_y": error_bars([1.5], [None])}], "y")["range"]
    assert 0.9 < 10**low < 1 < 1.5 < 10**high < 1.7


def test_a_gain_is_above_one_whatever_the_metric():
    entry = {"ratio": 0.5, "low": 0.4, "high": 0.8, "verdict": "better"}
    cell = {"comparison": {"a": {"mean_tpot_ms": entry, "output_throughput": entry}}}
    assert gain(cell, "a", None, "mean_tpot_ms").ratio == 2.0
    assert gain(cell, "a", None, "mean_tpot_ms").interval == pytest.approx((1.25, 2.5))
    assert gain(cell, "a", None, "output_throughput").ratio == 0.5
    assert gain(cell, "b", None, "mean_tpot_ms").ratio is None


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """WCAG 2 contrast ratio of two #rrggbb colours."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_can_be_told_from_the_paper(theme):
    """WCAG 2.2: 4.5 for text, 3 for the lines and bars of a figure."""
    style = files("sim.report.page").joinpath("assets", "page.css").read_text("utf-8")
    blocks = re.findall(r":root[^{]*\{([^}]*)\}", style)
    colours = dict(re.findall(r"--([\w]+): (#[0-9a-f]{6})", blocks[theme]))
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for name in ("ink", "soft", "link", "good", "bad"):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
    for name in ("baseline", "pays", "costs", *(f"c{place}" for place in range(8))):
        assert contrast(colours[name], colours["paper"]) >= 3, name
    for name in ("gain", "loss", "even"):
        assert contrast(colours["ink"], colours[name]) >= 4.5, name
