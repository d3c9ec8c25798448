"""The page in a real browser, its network off: nothing fails, every figure is drawn, the controls work."""

from __future__ import annotations

import os
import shutil

import pytest
from page_results import capacity_document, sweep_document, tune_document, write_document, write_run_with_tables

from sim.report.page.write import write_page

pytest.importorskip("plotly", reason="plotly, of the extra [plot], is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright, which drives the browser, is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")

KINDS = ["run", "sweep", "tune", "capacity"]
WIDTHS = [1400, 390]
MOST_MS = 120_000  # a busy machine is slow, and no test asserts a time
DRAWN = """() => page_figures().map(box => [box.id, box.querySelectorAll(
    '.scatterlayer .trace, .barlayer .point, .heatmaplayer image').length])"""
FIGURES = "window.page_figures = () => [...document.querySelectorAll('.plot')].filter(box => !box.hidden)"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    makers = {"sweep": sweep_document, "tune": tune_document, "capacity": capacity_document}
    found = {"run": write_page(write_run_with_tables(folder / "run", ["engine.replicas=2"]))}
    for kind, make in makers.items():
        result = write_document(folder / kind, f"{kind}.json", make(folder / kind))
        found[kind] = write_page(result)
    return found


@pytest.fixture(scope="module")
def browser():
    """It talks over pipes, opens no port, and ends with the tests."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser, pages):
    """Opens a page; at the end nothing may have failed or asked for the network."""
    contexts, complaints = [], []

    def open_page(kind, width=1400, **options):
        phone = {"is_mobile": True, "has_touch": True} if width < 500 else {}
        context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, **phone, **options)
        context.set_default_timeout(MOST_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on(
            "request", lambda r: None if r.url.startswith(("file:", "blob:", "data:")) else complaints.append(r.url)
        )
        page.add_init_script(FIGURES)
        page.goto(pages[kind].as_uri())
        page.wait_for_selector("html.drawn")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def pick(page, control, index):
    page.select_option(f'select[data-control="{control}"] >> nth=0', index=index)


def numbers(page, figure):
    """The table under a figure, as text."""
    if page.get_attribute(f"#{figure}-numbers", "open") is None:
        page.click(f"#{figure}-numbers summary")
    page.wait_for_selector(f"#{figure}-numbers td", state="attached")
    return page.inner_text(f"#{figure}-numbers table")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_is_drawn_within_the_page(opened, kind, width):
    page = opened(kind, width)
    drawn = dict(page.evaluate(DRAWN))
    assert len(drawn) == page.evaluate("JSON.parse(document.getElementById('page-data').textContent).figures.length")
    assert all(drawn.values()), drawn
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wider = "page_figures().filter(box => box.querySelector('svg').getBoundingClientRect().right > innerWidth).length"
    assert page.evaluate(wider) == 0
    assert page.evaluate("window.injected") is None


@pytest.mark.parametrize("kind", KINDS)
def test_every_option_of_every_control_can_be_picked(opened, kind):
    page = opened(kind)
    controls = page.evaluate(
        "[...document.querySelectorAll('select[data-control]')].map(s => [s.dataset.control, s.options.length])"
    )
    assert controls
    for control, options in dict(controls).items():
        before = page.evaluate("document.querySelector('main').innerHTML")
        for index in [*range(options), 0, options - 1]:
            pick(page, control, index)
            chosen = page.eval_on_selector_all(f'select[data-control="{control}"]', "all => all.map(s => s.value)")
            assert set(chosen) == {str(index)}
        assert page.evaluate("document.querySelector('main').innerHTML") != before, control


def test_a_slice_shows_its_own_numbers(opened):
    page = opened("run")
    shown = 'div[data-panel="slice"]:not([hidden])'
    whole, phases = page.inner_text(f"{shown} >> nth=0"), numbers(page, "figure-latency")
    pick(page, "slice", 1)
    assert page.inner_text(f"{shown} >> nth=0") != whole
    assert numbers(page, "figure-latency") != phases
    pick(page, "slice", 0)
    assert page.inner_text(f"{shown} >> nth=0") == whole


def test_a_cell_of_a_sweep_shows_its_own_numbers(opened):
    page = opened("sweep")
    pick(page, "axis-0", 2)
    pick(page, "axis-1", 0)
    shown = '[data-panel="axis-0 axis-1 slice"]:not([hidden]) >> nth=0'
    alone, figure = page.inner_text(shown), numbers(page, "figure-phases")
    pick(page, "axis-1", 2)
    assert page.inner_text(shown) != alone
    assert numbers(page, "figure-phases") != figure


@pytest.mark.parametrize(("kind", "figure"), [("run", "figure-cost"), ("capacity", "figure-cost-slo")])
def test_costs_follow_the_price(opened, kind, figure):
    page = opened(kind)
    texts = "[...document.querySelectorAll('[data-usd]')].map(place => place.textContent)"
    before, table = page.evaluate(texts), numbers(page, figure)
    page.fill("#price", "4")  # the scenario's is 2
    doubled = page.evaluate("[...document.querySelectorAll('[data-usd]')].map(place => 2 * place.dataset.usd)")
    after = [float(text.replace(",", "")) for text in page.evaluate(texts)]
    assert after == pytest.approx(doubled, rel=5e-3)
    assert numbers(page, figure) != table
    page.fill("#price", "2")
    assert page.evaluate(texts) == before
    assert numbers(page, figure) == table


def test_the_keyboard_alone_is_enough(opened):
    page = opened("run")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.control") == "slice"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.value") == "1"
    page.focus('button[popovertarget="define-ttft"] >> visible=true >> nth=0')
    page.keyboard.press("Enter")
    assert page.is_visible("#define-ttft")
    page.keyboard.press("Escape")
    assert not page.is_visible("#define-ttft")
    page.focus("#figure-phases-numbers summary")
    page.keyboard.press("Enter")
    page.wait_for_selector("#figure-phases-numbers td")
    assert page.locator("#figure-phases-numbers td").count() > 8


def test_flags_are_copied_as_they_stand(opened):
    page = opened("tune")
    page.click("button[data-copy] >> nth=0")
    page.wait_for_function("document.querySelector('button[data-copy]').textContent !== 'Copy'")
    assert page.evaluate("getSelection().toString()").startswith("--speculative-config '{")


def test_a_dark_system_has_a_dark_page(opened):
    light, dark = (opened("run", color_scheme=scheme) for scheme in ("light", "dark"))
    ink = "getComputedStyle(document.querySelector('#figure-phases .xtick text')).fill"
    for place in ("getComputedStyle(document.documentElement).backgroundColor", ink):
        assert light.evaluate(place) != dark.evaluate(place)


def test_paper_has_the_page_in_light_colours_within_its_width(opened):
    page = opened("run", color_scheme="dark")
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function("page_figures().every(box => box.querySelector('svg').getBoundingClientRect().width <= 662)")
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--paper').trim()") == "#ffffff"
    page.evaluate("dispatchEvent(new Event('afterprint'))")


def test_without_script_the_tables_are_there(opened, browser, pages):
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(pages["run"].as_uri())
    assert "output throughput" in page.inner_text("main")
    assert page.is_visible("noscript p")
    context.close()
