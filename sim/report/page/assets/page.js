// Draws the figures of the page and keeps them in step with its controls.
// Names of slices and arms come from users' files: `plain` takes the markup out of every text that Plotly would read.
"use strict";
(() => {
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const chosen = {}; // control -> index of its option
  const coarse = matchMedia("(pointer: coarse)").matches;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const TEXTS = new Set(["name", "text", "ticktext", "x", "y", "customdata"]);
  const PRINT_WIDTH = 660, NARROW = 560, LEGEND_LINE = 19; // pixels
  let printing = false;

  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

  function css(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }

  // Colours are names of CSS variables behind an @; texts lose their markup.
  function ready(value, key) {
    if (typeof value === "string") {
      if (value.startsWith("@") && !TEXTS.has(key)) return css(value.slice(1));
      return TEXTS.has(key) ? plain(value) : value;
    }
    if (Array.isArray(value)) return value.map((one) => ready(one, key));
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, ready(one, name)]));
  }

  function merged(under, over) {
    const both = { ...under };
    for (const [key, value] of Object.entries(over || {}))
      both[key] = isObject(value) && isObject(both[key]) ? merged(both[key], value) : value;
    return both;
  }

  function keyOf(names) {
    return names.map((name) => chosen[name]).join("|");
  }

  // Three significant digits with thousands separators, as in the tables.
  function numberText(value) {
    if (value === null || value === undefined) return "-";
    if (typeof value !== "number") return String(value);
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size < 1e-4 || size >= 1e9) return value.toExponential(2).replace(/e([+-])(\d)$/, "e$10$2");
    const digits = Math.max(0, 2 - Math.floor(Math.log10(size)));
    return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }

  // ------------------------------------------------------------------ price

  const priceInput = document.getElementById("price");

  function priceFactor() {
    if (!priceInput || !page.usd_per_gpu_hour) return 1;
    const price = priceInput.valueAsNumber;
    return Number.isFinite(price) && price >= 0 ? price / page.usd_per_gpu_hour : 1;
  }

  function scaled(trace, axis, factor) {
    const times = (value) => (typeof value === "number" ? value * factor : value);
    const error = trace["error_" + axis];
    if (Array.isArray(trace[axis])) trace[axis] = trace[axis].map(times);
    if (error && error.array)
      trace["error_" + axis] = { ...error, array: error.array.map(times), arrayminus: error.arrayminus.map(times) };
    return trace;
  }

  // ---------------------------------------------------------------- figures

  function tracesOf(figure) {
    const view = figure.views[keyOf(figure.keys)];
    if (!view) return null;
    const factor = priceFactor();
    return view.traces.flatMap((over, index) => {
      if (over === null) return [];
      const trace = merged(figure.traces[index], over);
      return [view.usd_axis ? scaled(trace, view.usd_axis, factor) : trace];
    });
  }

  // On a narrow page the legend has a line for each entry and would take them from the figure.
  function legendLines(figure, view) {
    const named = view ? figure.traces.filter((trace, index) => view.traces[index] && trace.name) : [];
    return named.length > 1 ? named.filter((trace) => trace.showlegend !== false).length : 0;
  }

  function layoutOf(figure) {
    const view = figure.views[keyOf(figure.keys)];
    const layout = merged(figure.layout, view && view.layout);
    const width = printing ? PRINT_WIDTH : document.getElementById(figure.id).parentElement.clientWidth;
    if (width < NARROW) layout.height += LEGEND_LINE * legendLines(figure, view);
    const axis = {
      gridcolor: "@grid", zerolinecolor: "@axis", linecolor: "@axis", automargin: true, fixedrange: coarse,
      title: { standoff: 8 },
    };
    for (const name of Object.keys(layout)) if (/^[xy]axis/.test(name)) layout[name] = merged(axis, layout[name]);
    return merged(
      {
        paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: !printing,
        font: { family: css("font"), size: 13, color: "@ink" }, margin: { l: 48, r: 16, t: 12, b: 44 },
        legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" }, hovermode: "closest",
        hoverlabel: { bgcolor: "@panel", bordercolor: "@axis", font: { color: "@ink" } },
        dragmode: coarse ? false : "zoom", ...(printing ? { width: PRINT_WIDTH } : {}),
      },
      layout,
    );
  }

  function draw(figure) {
    const box = document.getElementById(figure.id);
    const traces = tracesOf(figure);
    const empty = document.getElementById(figure.id + "-empty");
    empty.hidden = traces !== null && traces.length > 0;
    box.hidden = !empty.hidden;
    const done = box.hidden
      ? Promise.resolve()
      : Plotly.react(box, ready(traces), ready(layoutOf(figure)), {
          responsive: true, displaylogo: false, displayModeBar: coarse ? false : "hover",
          modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
        });
    const numbers = document.getElementById(figure.id + "-numbers");
    if (numbers.open) fillNumbers(figure, numbers);
    return done;
  }

  // -------------------------------------------------- the numbers of a figure

  function axisOf(layout, trace, axis) {
    const name = trace[axis + "axis"] || axis;
    return layout[name.replace(/^([xy])/, "$1axis")] || {};
  }

  function told(axis, value) {
    const place = axis.tickvals ? axis.tickvals.indexOf(value) : -1;
    return place >= 0 && axis.ticktext ? axis.ticktext[place] : numberText(value);
  }

  function interval(error, index, value) {
    if (!error || !error.array || typeof error.array[index] !== "number") return "";
    return numberText(value - error.arrayminus[index]) + " to " + numberText(value + error.array[index]);
  }

  function rowsOf(trace, layout) {
    const x = axisOf(layout, trace, "x"), y = axisOf(layout, trace, "y");
    if (trace.z)
      return trace.z.flatMap((line, row) =>
        line.map((value, column) => [told(x, trace.x[column]), told(y, trace.y[row]), trace.text ? trace.text[row][column] : numberText(value), ""]));
    return trace.x.map((value, index) => [
      trace.name || "", told(x, value), told(y, trace.y[index]),
      interval(trace.error_y, index, trace.y[index]) || interval(trace.error_x, index, value),
    ]);
  }

  function fillNumbers(figure, numbers) {
    const layout = layoutOf(figure), traces = tracesOf(figure) || [];
    const table = document.createElement("table");
    const title = (name) => ((layout[name] && layout[name].title && layout[name].title.text) || "");
    const heat = traces.some((trace) => trace.z);
    const header = heat ? [title("xaxis"), title("yaxis"), figure.value_label || "value", ""]
      : ["", title("xaxis") || "x", title("yaxis") || "y", "95 % interval"];
    const rows = traces.filter((trace) => trace.x).flatMap((trace) => rowsOf(trace, layout));
    for (const [index, cells] of [header, ...rows].entries()) {
      const row = table.insertRow();
      for (const cell of cells) {
        const place = document.createElement(index ? "td" : "th");
        place.textContent = cell;
        row.append(place);
      }
    }
    numbers.querySelector(".scroll").replaceChildren(table);
  }

  // --------------------------------------------------------------- controls

  function showPanels() {
    for (const panel of document.querySelectorAll("[data-panel]"))
      panel.hidden = panel.dataset.key !== keyOf(panel.dataset.panel.split(" "));
  }

  function showPrices() {
    const factor = priceFactor();
    for (const place of document.querySelectorAll("[data-usd]"))
      place.textContent = numberText(Number(place.dataset.usd) * factor);
  }

  function choose(name, index) {
    chosen[name] = index;
    for (const select of document.querySelectorAll("select[data-control]"))
      if (select.dataset.control === name) select.value = index;
    showPanels();
    for (const figure of page.figures) if (figure.keys.includes(name)) draw(figure);
  }

  function drawAll() {
    return Promise.all(page.figures.map(draw));
  }

  function printWith(on) {
    printing = on;
    document.documentElement.classList.toggle("printing", on);
    drawAll();
  }

  // Where the browser gives no clipboard the text is selected, ready to be copied by key.
  async function copy(button, source) {
    getSelection().selectAllChildren(source);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Selected";
    }
  }

  for (const select of document.querySelectorAll("[data-control]")) {
    chosen[select.dataset.control] = Number(select.value);
    select.addEventListener("change", () => choose(select.dataset.control, Number(select.value)));
  }
  if (priceInput)
    priceInput.addEventListener("input", () => {
      showPrices();
      for (const figure of page.figures) if (Object.values(figure.views).some((view) => view.usd_axis)) draw(figure);
    });
  for (const figure of page.figures) {
    const numbers = document.getElementById(figure.id + "-numbers");
    numbers.addEventListener("toggle", () => numbers.open && fillNumbers(figure, numbers));
  }
  for (const button of document.querySelectorAll("button[data-copy]"))
    button.addEventListener("click", () => copy(button, document.getElementById(button.dataset.copy)));
  dark.addEventListener("change", drawAll);
  addEventListener("beforeprint", () => printWith(true));
  addEventListener("afterprint", () => printWith(false));
  showPanels();
  drawAll().then(() => document.documentElement.classList.add("drawn"));
})();
