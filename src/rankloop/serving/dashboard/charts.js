// Charts, drawn with D3 as SVG: colours come from the style sheet, a cursor from pointer or arrow keys, words for all.
import { h } from "./format.js";

const MARGIN = { top: 8, right: 12, bottom: 22, left: 46 };

/** A place for a chart; `describe` is its name for those who do not see it. */
export function lineChart({ height = 220, describe, format, ticks, x = (value) => d3.format("~s")(value) }) {
  const figure = h("div", { class: "chart" });
  const legend = h("ul", { class: "legend" });
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  figure.append(legend);
  if (typeof d3 === "undefined") {
    figure.append(
      h("p", { class: "soft" }, "No charts: mpld3, which carries D3, is not installed with the service."),
      readout,
    );
    return { element: figure, draw: ({ lines }) => drawLegend(legend, lines, format) };
  }
  const svg = d3.select(figure).append("svg").attr("height", height).attr("role", "img").attr("tabindex", 0);
  const parts = Object.fromEntries(
    ["x", "y", "bands", "lines", "cursor"].map((name) => [name, svg.append("g").attr("class", name)]),
  );
  figure.append(readout);
  let data = { xs: [], lines: [] };
  let scale = null;
  let cursor = null;

  function draw(fresh) {
    data = fresh;
    drawLegend(legend, data.lines, format);
    redraw();
  }

  function redraw() {
    const width = figure.clientWidth;
    if (!width) return;
    svg.attr("viewBox", `0 0 ${width} ${height}`).attr("aria-label", inWords());
    const across = d3
      .scaleLinear()
      .domain(span(data.xs))
      .range([MARGIN.left, width - MARGIN.right]);
    const up = d3
      .scaleLinear()
      .domain(heights(data))
      .nice(5)
      .range([height - MARGIN.bottom, MARGIN.top]);
    scale = { across, up };
    parts.x.attr("transform", `translate(0,${height - MARGIN.bottom})`).call(
      d3
        .axisBottom(across)
        .ticks(Math.max(2, width / 110))
        .tickSize(0)
        .tickPadding(8)
        .tickFormat(x),
    );
    parts.y.attr("transform", `translate(${MARGIN.left},0)`).call(
      d3
        .axisLeft(up)
        .ticks(5)
        .tickSize(-(width - MARGIN.left - MARGIN.right))
        .tickPadding(8)
        .tickFormat(ticks ?? up.tickFormat(5)),
    );
    parts.y.select(".domain").remove();
    const at = (i) => across(data.xs[i]);
    const line = d3
      .line()
      .defined((d) => d !== null && d !== undefined)
      .x((d, i) => at(i))
      .y(up);
    const clamp = (value) => Math.max(MARGIN.top, Math.min(height - MARGIN.bottom, up(value)));
    const area = d3
      .area()
      .defined((d) => d[0] !== null && d[0] !== undefined)
      .x((d, i) => at(i))
      .y0((d) => clamp(d[0]))
      .y1((d) => clamp(d[1]));
    join(
      parts.bands,
      data.lines.filter((one) => one.low),
      "band",
      (one) => area(one.low.map((low, i) => [low, one.high[i]])),
    );
    join(parts.lines, data.lines, "line", (one) => line(one.values));
    point();
  }

  function point() {
    parts.cursor.selectAll("*").remove();
    if (cursor === null || !data.xs.length || !scale) return;
    cursor = Math.max(0, Math.min(data.xs.length - 1, cursor));
    const left = scale.across(data.xs[cursor]);
    parts.cursor
      .append("line")
      .attr("class", "rule")
      .attr("x1", left)
      .attr("x2", left)
      .attr("y1", MARGIN.top)
      .attr("y2", height - MARGIN.bottom);
    const there = data.lines.filter((one) => isNumber(one.values[cursor]));
    for (const one of there)
      parts.cursor
        .append("circle")
        .attr("class", `dot ${one.kind}`)
        .attr("r", 4)
        .attr("cx", left)
        .attr("cy", scale.up(one.values[cursor]));
    const told = there.map((one) => `${one.label} ${format(one.values[cursor])}${band(one, cursor)}`);
    readout.textContent = `${data.name(cursor)}: ${told.join(", ") || "nothing"}`;
  }

  function band(one, i) {
    return one.low && isNumber(one.low[i]) ? ` (${format(one.low[i])} to ${format(one.high[i])})` : "";
  }

  function inWords() {
    const told = data.lines.map((one) => {
      const i = lastIndex(one.values);
      return i < 0
        ? `${one.label}: nothing yet`
        : `${one.label}: now ${format(one.values[i])}${band(one, i)}`;
    });
    return `${describe}. ${told.join("; ")}. Arrow keys read single points.`;
  }

  const node = svg.node();
  node.addEventListener("pointermove", (event) => {
    if (!scale || !data.xs.length) return;
    const where = scale.across.invert(event.clientX - node.getBoundingClientRect().left);
    cursor = d3.bisector((d) => d).left(data.xs, where);
    if (cursor > 0 && where - data.xs[cursor - 1] < data.xs[cursor] - where) cursor -= 1;
    point();
  });
  for (const gone of ["pointerleave", "blur"]) {
    node.addEventListener(gone, () => {
      cursor = null;
      readout.textContent = "";
      point();
    });
  }
  node.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    cursor = cursor === null ? data.xs.length - 1 : cursor + step;
    point();
  });
  new ResizeObserver(redraw).observe(figure);
  return { element: figure, draw };
}

/** Bars for counts, with a label each. */
export function bars(places) {
  const most = Math.max(1, ...places.map((one) => one.count));
  return h(
    "ul",
    { class: "chances bars" },
    ...places.map((one, i) =>
      h(
        "li",
        {},
        h("span", { id: `bar-${i}` }, one.label),
        h("progress", { max: most, value: one.count, "aria-labelledby": `bar-${i}` }),
        h("span", { class: "num" }, one.told),
      ),
    ),
  );
}

/** A line the size of a word. */
export function sparkline(values, name) {
  const known = values.map((value, i) => [i, value]).filter(([, value]) => isNumber(value));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "spark");
  svg.setAttribute("viewBox", "0 0 84 34");
  svg.setAttribute("role", "img");
  svg.setAttribute(
    "aria-label",
    known.length
      ? `Mean reward of ${name}: ${known[0][1].toFixed(2)} at first, ${known[known.length - 1][1].toFixed(2)} now`
      : `No answers for ${name} yet`,
  );
  if (typeof d3 !== "undefined" && known.length > 1) {
    const across = d3
      .scaleLinear()
      .domain([0, values.length - 1])
      .range([3, 78]);
    const up = d3
      .scaleLinear()
      .domain(span(known.map(([, value]) => value)))
      .range([30, 4]);
    const [last, value] = known[known.length - 1];
    d3.select(svg)
      .append("path")
      .attr(
        "d",
        d3
          .line()
          .x((d) => across(d[0]))
          .y((d) => up(d[1]))(known),
      );
    d3.select(svg).append("circle").attr("r", 3).attr("cx", across(last)).attr("cy", up(value));
  }
  return svg;
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function lastIndex(values) {
  let i = values.length - 1;
  while (i >= 0 && !isNumber(values[i])) i -= 1;
  return i;
}

function span(values) {
  const [low, high] = d3.extent(values);
  if (low === undefined) return [0, 1];
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

/** Early bands are wide as a house: they may leave the picture, the lines may not. */
function heights(data) {
  if (data.range) return data.range;
  const told = [];
  for (const one of data.lines) {
    told.push(...one.values.filter(isNumber));
    for (const edge of [one.low, one.high])
      if (edge) told.push(...edge.slice(Math.floor(edge.length / 3)).filter(isNumber));
  }
  if (data.least !== undefined) told.push(data.least);
  return span(told);
}

function join(group, lines, kind, shape) {
  const paths = group.selectAll("path").data(lines, (one) => one.kind);
  paths.exit().remove();
  paths
    .enter()
    .append("path")
    .attr("class", (one) => `${kind} ${one.kind}`)
    .merge(paths)
    .attr("d", shape);
}

function drawLegend(legend, lines, format) {
  legend.replaceChildren(
    ...lines.map((one) => {
      const i = lastIndex(one.values);
      const key = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      key.setAttribute("aria-hidden", "true");
      key.innerHTML = '<path d="M1 4H25" fill="none" stroke-width="2.5"/>';
      key.firstChild.setAttribute("class", `line ${one.kind}`);
      return h(
        "li",
        {},
        key,
        h("span", {}, `${one.label} `, h("b", {}, i < 0 ? "–" : format(one.values[i]))),
      );
    }),
  );
}
