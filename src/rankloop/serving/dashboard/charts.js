// Charts as SVG: colours from the style sheet, a cursor for pointer and arrow keys, a description for screen readers.
import { h, s } from "./format.js";
import {
  areaPath,
  decimalsOf,
  extent,
  isNumber,
  linePath,
  linear,
  nearest,
  stepFor,
  ticks as ticksOf,
  timeLabel,
  timeStep,
  timeTicks,
  widened,
} from "./scale.js";

const MARGIN = { top: 24, right: 12, bottom: 40, left: 46 };
const TICKS_UP = 5;
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/**
 * A line chart. `describe` is its name for screen readers, `format` writes a value, `ticks` a value on the axis.
 * `draw` takes `xs`, `lines` ({kind, label, values, low, high, rough}), `name(i)` of a point, `across` and `up`, the
 * names of the axes, `time` where `xs` are times, and perhaps `least`, a value that the axis must reach.
 */
export function lineChart({ height = 250, describe, format, ticks }) {
  const legend = h("ul", { class: "legend" });
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const parts = Object.fromEntries(
    ["x", "y", "names", "bands", "lines", "cursor"].map((name) => [name, s("g", { class: name })]),
  );
  const svg = s("svg", { height, role: "img", tabindex: 0 }, ...Object.values(parts));
  const figure = h("div", { class: "chart" }, legend, svg, readout);
  const bottom = height - MARGIN.bottom;
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
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-label", inWords());
    const right = width - MARGIN.right;
    const span = data.time ? extent(data.xs) : [0, extent([0, ...data.xs])[1]];
    const heights = heightsOf(data);
    const step = stepFor(heights, TICKS_UP);
    const range = widened(heights, step);
    scale = { across: linear(span, [MARGIN.left, right]), up: linear(range, [bottom, MARGIN.top]) };
    drawAxes(span, range, step, right);
    const clamp = (value) => Math.max(MARGIN.top, Math.min(bottom, scale.up(value)));
    const at = data.xs.map(scale.across);
    join(
      parts.bands,
      data.lines.filter((one) => one.low),
      "band",
      (one) =>
        areaPath(at.map((x, i) => [x, maybe(one.low[i], clamp), maybe(one.high[i], clamp)])),
    );
    join(parts.lines, data.lines, "line", (one) =>
      linePath(at.map((x, i) => [x, maybe(one.values[i], clamp)])),
    );
    point();
  }

  function drawAxes(span, range, step, right) {
    const written = ticks ?? ((value) => value.toFixed(decimalsOf(step)));
    parts.y.replaceChildren(
      ...ticksOf(range, step).map((value) =>
        s(
          "g",
          { class: "tick", transform: `translate(0,${scale.up(value)})` },
          s("line", { x1: MARGIN.left, x2: right }),
          s("text", { x: MARGIN.left - 8, dy: "0.32em", "text-anchor": "end" }, written(value)),
        ),
      ),
    );
    const most = Math.max(3, Math.floor((right - MARGIN.left) / 90));
    // An axis that counts lists has no fractions.
    const along = data.time ? timeStep(span, most) : Math.max(1, stepFor(span, most));
    const round = data.time ? timeTicks(span, along) : ticksOf(span, along);
    const places = round.length > 1 ? round : span; // a moment has no round times in it
    const anchor = (i) => (round.length > 1 ? "middle" : i ? "end" : "start");
    parts.x.replaceChildren(
      s("line", { class: "base", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom }),
      ...places.map((value, i) =>
        s(
          "text",
          { x: scale.across(value), y: bottom + 8, dy: "0.71em", "text-anchor": anchor(i) },
          data.time ? timeLabel(value, along) : compact.format(value),
        ),
      ),
    );
    parts.names.replaceChildren(
      s("text", { class: "name", x: 2, y: 12 }, data.up ?? ""),
      s("text", { class: "name", x: right, y: height - 4, "text-anchor": "end" }, data.across ?? ""),
    );
  }

  function point() {
    parts.cursor.replaceChildren();
    if (cursor === null || !data.xs.length || !scale) return;
    cursor = Math.max(0, Math.min(data.xs.length - 1, cursor));
    const left = scale.across(data.xs[cursor]);
    const there = data.lines.filter((one) => isNumber(one.values[cursor]));
    parts.cursor.replaceChildren(
      s("line", { class: "rule", x1: left, x2: left, y1: MARGIN.top, y2: bottom }),
      ...there.map((one) =>
        s("circle", { class: `dot ${one.kind}`, r: 4, cx: left, cy: scale.up(one.values[cursor]) }),
      ),
    );
    const told = there.map((one) => `${one.label} ${format(one.values[cursor])}${band(one, cursor)}`);
    readout.textContent = `${data.name(cursor)}: ${told.join(", ") || "no value"}`;
  }

  function band(one, i) {
    return one.low && isNumber(one.low[i]) ? ` (${format(one.low[i])} to ${format(one.high[i])})` : "";
  }

  function inWords() {
    const told = data.lines.map((one) => {
      const i = lastIndex(one.values);
      return i < 0
        ? `${one.label}: no value yet`
        : `${one.label}: now ${format(one.values[i])}${band(one, i)}`;
    });
    return `${describe}. ${told.join("; ")}. Arrow keys read single points.`;
  }

  svg.addEventListener("pointermove", (event) => {
    if (!scale || !data.xs.length) return;
    cursor = nearest(data.xs, scale.across.invert(event.clientX - svg.getBoundingClientRect().left));
    point();
  });
  for (const gone of ["pointerleave", "blur"]) {
    svg.addEventListener(gone, () => {
      cursor = null;
      readout.textContent = "";
      point();
    });
  }
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    cursor = cursor === null ? data.xs.length - 1 : cursor + move;
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
  const words = known.length
    ? `Mean reward of ${name}: ${known[0][1].toFixed(2)} at first, ${known[known.length - 1][1].toFixed(2)} now`
    : `No feedback for ${name} yet`;
  const svg = s("svg", { class: "spark", viewBox: "0 0 84 34", role: "img", "aria-label": words });
  if (known.length > 1) {
    const across = linear([0, values.length - 1], [3, 78]);
    const up = linear(extent(known.map(([, value]) => value)), [30, 4]);
    const points = known.map(([i, value]) => [across(i), up(value)]);
    const [x, y] = points[points.length - 1];
    svg.append(s("path", { d: linePath(points) }), s("circle", { r: 3, cx: x, cy: y }));
  }
  return svg;
}

const maybe = (value, scale) => (isNumber(value) ? scale(value) : null);

function lastIndex(values) {
  let i = values.length - 1;
  while (i >= 0 && !isNumber(values[i])) i -= 1;
  return i;
}

/** The range of the vertical axis. Estimates from a few lists jump and have wide bands: early points may leave it. */
function heightsOf(data) {
  const found = [];
  for (const one of data.lines) {
    const late = (values, share) => values.slice(Math.floor(values.length * share)).filter(isNumber);
    found.push(...late(one.values, one.low || one.rough ? 1 / 20 : 0));
    for (const edge of [one.low, one.high]) if (edge) found.push(...late(edge, 1 / 3));
  }
  if (data.least !== undefined) found.push(data.least);
  return extent(found);
}

/** One path for each line; those that stay are changed, so that the page is not made anew each second. */
function join(group, lines, kind, shape) {
  const old = new Map([...group.children].map((path) => [path.dataset.kind, path]));
  const paths = lines.map((one) => {
    const path =
      old.get(one.kind) ?? s("path", { class: `${kind} ${one.kind}`, "data-kind": one.kind });
    path.setAttribute("d", shape(one));
    return path;
  });
  group.replaceChildren(...paths);
}

function drawLegend(legend, lines, format) {
  legend.replaceChildren(
    ...lines.map((one) => {
      const i = lastIndex(one.values);
      const stroke = s("path", { class: `line ${one.kind}`, d: "M1 4H25", fill: "none", "stroke-width": 2.5 });
      return h(
        "li",
        {},
        s("svg", { "aria-hidden": "true" }, stroke),
        h("span", {}, `${one.label} `, h("b", {}, i < 0 ? "–" : format(one.values[i]))),
      );
    }),
  );
}
