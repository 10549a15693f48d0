// The page's figures. All data stand in #report-data; nothing is fetched, and text enters the page as text only.
"use strict";
(() => {
  const report = JSON.parse(document.getElementById("report-data").textContent);
  const rows = report.rows.map((values) => Object.fromEntries(report.columns.map(
    (name, place) => [name, place < report.wordColumns ? report.words[values[place]] : values[place]])));
  const state = {};
  const LINEAR_SPAN = 20;  // beyond this span a linear axis would hide the small ones
  const DASHES = ["solid", "dash", "dot", "dashdot"];
  const PHASE_COLOURS = {
    create_file: "#9ec3ea", create_array: "#5f97d3", write: "#e07b1a", flush: "#f0ad63", close: "#a3adba",
    fsync: "#8a5a34", open_file: "#b9a3dc", open_array: "#7a52a8", read: "#35a873", append: "#c2498f",
  };
  const UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]];

  const distinct = (values) => [...new Set(values)];
  const known = (value) => value !== null && value !== undefined;
  // Plotly reads a little HTML in its labels: names are to be shown, not read.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const unitOf = (seconds) => UNITS.find(([size]) => seconds >= size) || UNITS[UNITS.length - 1];
  const times = (value) => value.toLocaleString("en", {
    maximumSignificantDigits: 3, notation: value >= 1e5 ? "compact" : "standard"});
  const secondsText = (seconds) => { const [size, name] = unitOf(seconds); return `${times(seconds / size)} ${name}`; };
  const arraysOf = (row) => `${row.count} × [${row.shape.replaceAll("x", " × ")}]`;
  const elements = (row) => row.shape.split("x").reduce((product, length) => product * Number(length), 1);
  const operationName = (row) => row.operation.split("(")[0];
  const seriesName = (row) => row.conditions + (row.processes > 1 ? `, ${row.processes} processes` : "");
  const titleOf = (name) => report.formats[name].title;
  const metricTitle = (metric) => (report.metrics[metric] || {})[state.method] || metric;
  const order = (names, table) => Object.keys(table).filter((name) => names.includes(name));
  const faded = (hex) => `rgba(${[1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(",")},0.16)`;

  function range(values) {
    const least = Math.min(...values), most = Math.max(...values);
    return least === most ? `${least}` : `${least} to ${most}`;
  }

  // A select for one word of the state; keeps what was chosen where it is still offered.
  function choose(parent, name, title, options, preferred, texts = (option) => option) {
    if (!options.includes(state[name])) state[name] = options.includes(preferred) ? preferred : options[0];
    if (options.length < 2) return;
    const label = document.createElement("label"), select = document.createElement("select");
    label.textContent = title;
    select.dataset.choice = name;
    for (const option of options) {
      const entry = document.createElement("option");
      entry.value = option;
      entry.textContent = texts(option);
      entry.selected = option === state[name];
      select.append(entry);
    }
    select.addEventListener("change", () => { state[name] = select.value; draw(); });
    label.append(select);
    parent.append(label);
  }

  function pane(name, shown) {
    const figure = document.getElementById(`figure-${name}`);
    figure.hidden = !shown;
    const controls = figure.querySelector(".controls");
    controls.replaceChildren();
    return {controls, plot: figure.querySelector(".plot"), caption: figure.querySelector("figcaption")};
  }

  function caption(shown, drawn) {
    const about = report.cases[state.case], method = about.methods[state.method];
    const n = `Accepted trials: n = ${range(shown.map((row) => row.n))} each`;
    const none = shown.some((row) => !known(row.low)) ? `; no interval where n < ${report.leastForInterval}` : "";
    return [
      drawn, n + none, `Method: ${method.text}`,
      `Cache state: ${distinct(shown.map((row) => report.caches[row.cache].text)).join(", ")}`,
      `Conditions: ${distinct(shown.map((row) => method.conditions[row.conditions])).join("; ")}`,
      `Data: ${distinct(shown.map(arraysOf)).join(", ")} ${about.dtype}, ${about.data}`, ...(about.scale ? [about.scale] : []),
      `Machine: ${report.machine}`,
    ].map((part) => part[0].toUpperCase() + part.slice(1).replace(/\.$/, "") + ".").join(" ");
  }

  function layout(extra) {
    const axis = {gridcolor: colour("--grid"), linecolor: colour("--grid"), zeroline: false, automargin: true};
    const base = {
      font: {family: colour("--sans") || "sans-serif", size: 13, color: colour("--ink")},
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", height: 390,
      margin: {l: 64, r: 12, t: 12, b: 40}, hoverlabel: {align: "left"},
      legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0},
      modebar: {bgcolor: "rgba(0,0,0,0)", color: colour("--rule"), activecolor: colour("--muted")},
    };
    for (const name of Object.keys(extra)) {
      base[name] = /^[xy]axis/.test(name) ? {...axis, ...extra[name]} : extra[name];
    }
    return base;
  }

  const plot = (place, traces, extra) => Plotly.react(
    place, traces, layout(extra), {
      displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d"],
      displayModeBar: window.innerWidth < 640 ? false : "hover",  // its buttons would lie on the legend
    });

  // A logarithmic axis, marked as people read numbers: 1, 2, 5 of each decade, or the decades alone where they are many.
  function logAxis(title, values, text = times) {
    const least = Math.min(...values) / 1.6, most = Math.max(...values) * 1.6;
    const steps = most > 300 * least ? [1] : [1, 2, 5], marks = [];
    for (let decade = Math.floor(Math.log10(least)); decade <= Math.log10(most); decade += 1) {
      for (const step of steps) marks.push(Number(`${step}e${decade}`));
    }
    return {type: "log", title: {text: title}, tickmode: "array", tickvals: marks, ticktext: marks.map(text),
            range: [Math.log10(least), Math.log10(most)]};
  }

  function hover(row) {
    const interval = known(row.low) ? `${secondsText(row.low)} to ${secondsText(row.high)}` : "unknown";
    const speed = known(row.megabytes) ? `<br>${times(row.megabytes / row.median)} decoded MB/s at the median` : "";
    return `<b>${plain(titleOf(row.format))}</b> ${plain(metricTitle(row.metric))}<br>`
      + `${plain(seriesName(row))}, ${plain(report.caches[row.cache].title)}, ${plain(arraysOf(row))}<br>`
      + `${plain(report.cases[row.case].methods[row.method].statistic)}: ${secondsText(row.shown)}<br>`
      + `median ${secondsText(row.median)}, 95 % interval ${interval}<br>n = ${row.n}${speed}<extra></extra>`;
  }

  // Grouped bars: conditions and cache states side by side, one colour for each format.
  function drawBars(mine) {
    const {controls, plot: place, caption: under} = pane("bars", mine.length > 0);
    if (!mine.length) return;
    chooseOperation(controls, mine);
    let shown = mine.filter((row) => row.operation === state.operation);
    const total = report.operations[state.operation].total;
    const metrics = order(distinct(shown.map((row) => row.metric)), report.metrics);
    choose(controls, "metric", "What is timed", metrics, total, metricTitle);
    chooseArrays(controls, shown);
    shown = shown.filter((row) => row.metric === state.metric && arraysOf(row) === state.arrays);
    if (!shown.length) { place.replaceChildren(); under.textContent = "Not measured."; return; }
    const groupOf = (row) => `${plain(seriesName(row))}<br>${plain(report.caches[row.cache].title)}`;
    const groups = distinct(shown.map(groupOf)), formats = order(shown.map((row) => row.format), report.formats);
    const heights = shown.map((row) => row.shown / row.divisor);
    const members = groups.map((group) => formats.filter(
      (name) => shown.some((row) => row.format === name && groupOf(row) === group)));
    const [size, unit] = unitOf(Math.max(...heights)), width = 0.84 / Math.max(...members.map((mates) => mates.length));
    const xOf = (row) => {
      const group = groups.indexOf(groupOf(row)), mates = members[group];
      return group + (mates.indexOf(row.format) + 0.5 - mates.length / 2) * width;
    };
    const traces = formats.flatMap((name) => {
      const own = shown.filter((row) => row.format === name), x = own.map(xOf);
      const scaled = (key) => own.map((row) => row[key] / row.divisor / size);
      const reach = (from, to) => own.map((row) => known(row.low) ? (row[to] - row[from]) / row.divisor / size : 0);
      return [
        {type: "bar", name: plain(titleOf(name)), legendgroup: name, x, y: scaled("shown"), width: width * 0.9,
         marker: {color: report.formats[name].colour}, hovertemplate: own.map(hover)},
        {type: "scatter", mode: "markers", legendgroup: name, showlegend: false, hoverinfo: "skip", x,
         y: scaled("median"), marker: {size: 0.1, color: colour("--ink")},
         error_y: {type: "data", symmetric: false, array: reach("median", "high"), arrayminus: reach("low", "median"),
                   thickness: 1.3, width: 3, color: colour("--ink")}},
      ];
    });
    const positive = heights.filter((height) => height > 0).map((height) => height / size);
    const log = positive.length > 1 && Math.max(...positive) > LINEAR_SPAN * Math.min(...positive);
    const each = (shown[0].divisor > 1 ? `${unit} per array` : unit) + (log ? ", logarithmic" : "");
    const yaxis = log ? logAxis(each, positive) : {title: {text: each}, rangemode: "tozero"};
    plot(place, traces, {
      xaxis: {tickvals: groups.map((_, at) => at), ticktext: groups, showgrid: false, range: [-0.55, groups.length - 0.45]},
      yaxis, barmode: "overlay", showlegend: true,
    });
    const statistic = report.cases[state.case].methods[state.method].statistic;
    const per = shown[0].divisor > 1 ? ` for one array (total / ${shown[0].divisor})` : "";
    under.textContent = caption(shown, `${metricTitle(state.metric)}: ${unit}${per}${log ? ", logarithmic" : ""}; `
      + `bars: ${statistic}; whiskers: ${report.interval}`);
  }

  function chooseOperation(controls, mine) {
    const label = (name) => `${name}: ${report.operations[name].title}`;
    choose(controls, "operation", "Operation", distinct(mine.map((row) => row.operation)), "read-all", label);
  }

  function chooseArrays(controls, shown) {
    const sizes = distinct([...shown].sort((a, b) => elements(a) * a.count - elements(b) * b.count).map(arraysOf));
    choose(controls, "arrays", "Arrays", sizes, sizes[sizes.length - 1]);
  }

  // Stacked phases: what a format does with its time.
  function drawPhases(mine) {
    let shown = mine.filter((row) => row.operation === state.operation && report.phases.includes(row.metric)
      && arraysOf(row) === state.arrays);
    const {controls, plot: place, caption: under} = pane("phases", shown.length > 0);
    if (!shown.length) return;
    const seriesNames = distinct(shown.map(seriesName));
    choose(controls, "series", "Conditions", seriesNames, seriesNames[0]);
    shown = shown.filter((row) => seriesName(row) === state.series);
    const caches = distinct(shown.map((row) => row.cache));
    choose(controls, "cache", "Cache", caches, "warm", (name) => report.caches[name].title);
    shown = shown.filter((row) => row.cache === state.cache);
    const sums = new Map();
    for (const row of shown) sums.set(row.format, (sums.get(row.format) || 0) + row.median);
    const formats = [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a));
    const [size, unit] = unitOf(Math.max(...sums.values()));
    let phases = report.phases.filter((phase) => shown.some((row) => row.metric === phase));
    if (phases.includes("read")) phases = [...phases.filter((phase) => phase !== "close"), "close"];  // reads close last
    const traces = phases.map((phase) => {
      const own = shown.filter((row) => row.metric === phase);
      return {type: "bar", orientation: "h", name: phase.replaceAll("_", " "), y: own.map((row) => plain(titleOf(row.format))),
              x: own.map((row) => row.median / size), marker: {color: PHASE_COLOURS[phase]}, hovertemplate: own.map(hover)};
    });
    plot(place, traces, {
      barmode: "stack", height: Math.max(230, 120 + 34 * formats.length), showlegend: true,
      legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0, traceorder: "normal"},
      xaxis: {title: {text: `${unit}, all arrays`}, rangemode: "tozero"},
      yaxis: {categoryorder: "array", categoryarray: formats.map((name) => plain(titleOf(name))), showgrid: false},
    });
    under.textContent = caption(shown, `${state.operation}: ${unit} for all arrays; medians of each phase, which need not `
      + `add up to the median of the whole; intervals (${report.interval}) are in the hover`);
  }

  function lineTraces(shown, point, extra = {}) {
    const series = distinct(shown.map(seriesName));
    return order(shown.map((row) => row.format), report.formats).flatMap((name) => series.flatMap((kind) => {
      const own = shown.filter((row) => row.format === name && seriesName(row) === kind)
        .map((row) => ({row, ...point(row)})).filter(({y}) => y > 0).sort((a, b) => a.x - b.x);
      if (!own.length) return [];
      const paint = report.formats[name], group = `${name} ${kind}`, banded = own.filter(({low}) => known(low));
      const shared = {legendgroup: group, ...extra};
      const edge = {...shared, mode: "lines", line: {width: 0}, showlegend: false, hoverinfo: "skip", x: banded.map(({x}) => x)};
      const title = series.length > 1 ? `${titleOf(name)}, ${kind}` : titleOf(name);
      return [
        {...edge, y: banded.map(({low}) => low)},
        {...edge, y: banded.map(({high}) => high), fill: "tonexty", fillcolor: faded(paint.colour)},
        {...shared, type: "scatter", mode: "lines+markers", name: plain(title), x: own.map(({x}) => x), y: own.map(({y}) => y),
         line: {color: paint.colour, width: 2, dash: DASHES[series.indexOf(kind) % DASHES.length]},
         marker: {symbol: paint.symbol, size: 7}, hovertemplate: own.map(({row}) => hover(row))},
      ];
    }));
  }

  // Time against size, both logarithmic.
  function drawScale(mine) {
    let shown = mine.filter((row) => row.operation === state.operation && row.metric === state.metric);
    const sized = !report.cases[state.case].speed && distinct(shown.map(arraysOf)).length > 1;
    const {controls, plot: place, caption: under} = pane("scale", sized);
    if (!sized) return;
    const caches = distinct(shown.map((row) => row.cache));
    choose(controls, "cache", "Cache", caches, "warm", (name) => report.caches[name].title);
    shown = shown.filter((row) => row.cache === state.cache);
    const byCount = distinct(shown.map(elements)).length === 1;
    const point = (row) => ({x: byCount ? row.count : elements(row), y: row.shown, low: row.low, high: row.high});
    const values = shown.map(point), label = byCount ? "arrays in the file" : "elements of one array";
    plot(place, lineTraces(shown, point), {
      xaxis: logAxis(`${label}, logarithmic`, values.map(({x}) => x)), showlegend: true,
      yaxis: logAxis("time for all arrays, logarithmic", values.map(({y}) => y).filter((y) => y > 0), secondsText),
    });
    const statistic = report.cases[state.case].methods[state.method].statistic;
    under.textContent = caption(shown, `${state.operation}, ${metricTitle(state.metric)}: seconds for all arrays against ${label}, `
      + `both axes logarithmic; lines: ${statistic}; bands: ${report.interval}`);
  }

  // Throughput against size, in total and alone, as in 2002.
  function drawSpeed(mine) {
    const name = state.operation.split("(")[0], {total, alone} = report.operations[state.operation];
    let shown = mine.filter((row) => operationName(row) === name && [total, alone].includes(row.metric) && known(row.megabytes));
    const {controls, plot: place, caption: under} = pane("speed", report.cases[state.case].speed && shown.length > 0);
    if (!report.cases[state.case].speed || !shown.length) return;
    const caches = distinct(shown.map((row) => row.cache));
    choose(controls, "cache", "Cache", caches, "warm", (cache) => report.caches[cache].title);
    shown = shown.filter((row) => row.cache === state.cache);
    const byCount = distinct(shown.map((row) => row.count)).length > 1;
    const point = (row) => ({x: byCount ? row.count : row.megabytes, y: row.megabytes / row.shown,
                             low: known(row.low) ? row.megabytes / row.high : null,
                             high: known(row.low) ? row.megabytes / row.low : null});
    const of = (metric) => shown.filter((row) => row.metric === metric);
    const quiet = {showlegend: false};
    const right = lineTraces(of(alone), point, {xaxis: "x2", yaxis: "y2"}).map((trace) => ({...trace, ...quiet}));
    const label = byCount ? "arrays in the file" : "decoded MB per trial";
    const xs = shown.map(point).map(({x}) => x), ys = shown.map(point).map(({y}) => y).filter((y) => y > 0);
    const heading = (metric, x) => ({text: `<b>${plain(metricTitle(metric))}</b>`, xref: "paper", yref: "paper", x, y: 1.01,
                                     xanchor: "left", yanchor: "bottom", showarrow: false});
    plot(place, [...lineTraces(of(total), point), ...right], {
      grid: {rows: 1, columns: 2, pattern: "independent"}, height: 430, showlegend: true,
      legend: {orientation: "h", y: 1.1, yanchor: "bottom", x: 0}, annotations: [heading(total, 0), heading(alone, 0.55)],
      xaxis: {...logAxis(`${label}, logarithmic`, xs), domain: [0, 0.46]}, xaxis2: {...logAxis(`${label}, logarithmic`, xs), domain: [0.55, 1]},
      yaxis: logAxis("decoded MB/s, logarithmic", ys), yaxis2: {...logAxis("", ys), anchor: "x2"},
    });
    const statistic = report.cases[state.case].methods[state.method].statistic;
    under.textContent = caption(shown, `${name}: decoded MB/s against ${label}, all axes logarithmic; lines: ${statistic}; bands: ${report.interval}`);
  }

  function drawChoosers() {
    const names = Object.keys(report.cases);
    const title = (name) => report.cases[name].title ? `${name}: ${report.cases[name].title}` : name;
    for (const id of ["answer-chooser", "chooser"]) {
      const bar = document.getElementById(id);
      if (!bar) continue;
      bar.replaceChildren();
      choose(bar, "case", "Case", names, names[0], title);
      if (id === "chooser") {
        const methods = Object.keys(report.cases[state.case].methods);
        choose(bar, "method", "Method", methods, "fair");
      }
      bar.hidden = !bar.children.length;
    }
    for (const article of document.querySelectorAll("article.answer")) {
      article.hidden = article.dataset.case !== state.case;
    }
  }

  function draw() {
    drawChoosers();
    const mine = rows.filter((row) => row.case === state.case && row.method === state.method);
    drawBars(mine);
    drawPhases(mine);
    drawScale(mine);
    drawSpeed(mine);
    document.body.dataset.drawn = `${state.case} ${state.method}`;
  }

  function filterVerdicts() {
    const bar = document.getElementById("verdict-filter");
    if (!bar) return;
    bar.addEventListener("click", (event) => {
      const chosen = event.target.closest("button");
      if (!chosen) return;
      for (const button of bar.children) button.setAttribute("aria-pressed", String(button === chosen));
      for (const row of document.querySelectorAll("#verdicts tbody tr")) {
        row.hidden = chosen.dataset.verdict !== "" && row.dataset.verdict !== chosen.dataset.verdict;
      }
    });
  }

  filterVerdicts();
  if (rows.length) {
    draw();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }
})();
