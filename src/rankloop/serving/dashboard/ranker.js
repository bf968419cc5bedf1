// One ranker: its quality, its current order, its exploration, the delay of feedback, and its health.
import { ask, path } from "./api.js";
import { bars, lineChart } from "./charts.js";
import { inspector } from "./inspector.js";
import { itemTable } from "./items.js";
import { operator } from "./operate.js";
import { movingOrder } from "./order_list.js";
import { lastNotBeyond } from "./scale.js";
import {
  ago,
  byId,
  count,
  decimal,
  duration,
  h,
  moment,
  percent,
  plural,
  say,
  tell,
} from "./format.js";

const REFRESH = 1000; // milliseconds between two looks at the roll-ups, however much happens
const POINTS = 60; // in a chart of what happened in each stretch of time
const SMALL = { height: 190 };
const SHORT = { dcg: "DCG", clicks: "clicks", relevance: "relevance", relevant: "relevant positions", answers: "mean feedback" };
const wholePercent = (share) => `${Math.round(100 * share)}%`;
const shortName = (measure) => SHORT[measure] ?? `${measure[0].toUpperCase()}${measure.slice(1)}`;
const NAMES = { clicks: "Clicks per list", relevance: "Observed relevance", relevant: "Share of relevant positions" };
const nameOf = (measure) => NAMES[measure] ?? `${shortName(measure)} per list`;
const HOW = {
  clicks: "Clicks per list, as observed",
  relevance: "Mean relevance of the positions that reveal theirs, as observed",
  relevant: "Share of the revealed positions that were relevant, as observed",
};
const between = ({ low, high }) => `between ${decimal(low)} and ${decimal(high)}`;

/** The view of one ranker, for `element`; `choose(id)` opens a list, `others()` names the other rankers. */
export function rankerView(element, name, choose, others) {
  const root = byId("ranker-view").content.cloneNode(true);
  const parts = Object.fromEntries(
    [...root.querySelectorAll("[data-part]")].map((one) => [one.dataset.part, one]),
  );
  tell(root.getElementById("ranker-title"), name);
  element.replaceChildren(root);
  const order = movingOrder({ label: "Current order, best first" });
  const worth = lineChart({ describe: "Quality of a list", format: decimal });
  const explored = lineChart({
    ...SMALL,
    describe: "Share of lists that explore",
    format: percent,
    ticks: wholePercent,
  });
  const delay = lineChart({
    ...SMALL,
    describe: "Mean delay of feedback",
    format: duration,
    ticks: duration,
  });
  const looking = inspector(name, parts, choose);
  const table = itemTable(name, parts);
  const operating = operator(name, parts);
  for (const [part, { element: made }] of Object.entries({ order, worth, explored, delay }))
    parts[part].append(made);
  const { tiles, badges, health, internals, measure, summary, delays, settings } = parts;
  const { window: span, along, compare } = parts;
  measure.onchange = () => drawWorth();
  along.onchange = () => drawAll();
  span.onchange = () => refresh();
  compare.onchange = () => refresh();
  let ranker = null;
  let series = null;
  let other = null; // the series of the ranker to compare with
  let now = Date.now();
  let planned = null;
  let gone = false;
  let announced = 0;

  function update(fresh, time) {
    ranker = fresh;
    now = time;
    drawTiles();
    drawHealth();
    drawSettings();
    operating.update(ranker);
    table.update(ranker);
    offer(compare, ["", ...others()], (one) => one || "nothing");
    parts["order-card"].hidden = !ranker.current.length;
    const moved = order.show(ranker.current);
    if (moved.length && Date.now() - announced > 10000) {
      announced = Date.now();
      say(`The order of ${name} changed. First is ${ranker.current[0]}.`);
    }
    planned ??= setTimeout(refresh, series ? REFRESH : 0);
  }

  async function refresh() {
    try {
      const seriesOf = (one) => ask(`${path(one, "series")}?window=${span.value}`);
      const rival = compare.value;
      const [told, rivals] = await Promise.all([
        seriesOf(name),
        rival ? seriesOf(rival) : null,
        looking.refresh(ranker),
      ]);
      if (gone) return;
      series = told;
      other = rivals;
      drawAll();
    } catch {
      // The service is away; the stream says so, and the next news brings us back here.
    } finally {
      planned = null;
    }
  }

  function drawAll() {
    if (!series) return;
    drawWorth();
    drawRest();
  }

  function drawTiles() {
    const { counts } = ranker;
    const answered = counts.decisions ? counts.answered / counts.decisions : null;
    const silent = counts.learnt - counts.answered;
    const rest = silent > 0 ? `; ${count(silent)} more counted as no click` : "";
    const [main] = Object.entries(ranker.estimates.value);
    const tile = main
      ? [nameOf(main[0]), decimal(main[1].mean), `with 95% probability ${between(main[1])}, however often you look`]
      : ["Quality", "–", "not enough feedback yet"];
    parts["explored-card"].hidden = !explores();
    put(
      tiles,
      [
        tile,
        ["Lists shown", count(counts.decisions), `${count(counts.learnt)} learnt from`],
        ["Feedback received", percent(answered), `on ${count(counts.answered)} lists${rest}`],
        ...(explores() ? [["Exploration", percent(ranker.exploration_share), "of all lists so far"]] : []),
      ],
      ([term, value, more]) =>
        h("div", { class: "tile" }, h("dt", {}, term), h("dd", {}, value, h("small", {}, more))),
    );
    put(
      badges,
      [
        [`${ranker.algorithm}: ${ranker.summary || "learns from feedback"}`, ""],
        ...(ranker.frozen ? [["frozen: learning is paused", "warn"]] : []),
      ],
      ([words, kind]) => h("span", { class: `badge ${kind}` }, words),
    );
  }

  /** Whether some lists explore and others do not: one that samples every list has no share to show. */
  const explores = () => ranker.exploration_share > 0 && ranker.exploration_share < 1;

  function drawHealth() {
    const { counts } = ranker;
    const lag = ranker.last_seq - ranker.model_seq;
    const row = ([term, value]) => h("div", { class: "facts-row" }, h("dt", {}, term), h("dd", {}, value));
    put(
      health,
      [
        ["Last event", ago(ranker.last_at, now)],
        ["Log", plural(ranker.last_seq, "row")],
        ["Snapshot", ranker.snapshot_seq ? `at row ${count(ranker.snapshot_seq)}` : "none yet"],
        ["Late feedback", count(counts.late)],
        ["Expired lists", `${count(counts.expired)} without feedback`],
        ["Dead letters", count(counts.dead)],
        ["Conflicts", count(counts.conflicts)],
      ],
      row,
    );
    put(
      internals,
      [
        ["Lag", lag > 0 ? plural(lag, "row") : "none"],
        ["Parked feedback", count(ranker.parked)],
        ["State hash", ranker.state_hash.slice(0, 12)],
      ],
      row,
    );
  }

  function drawSettings() {
    const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value));
    put(
      settings,
      [
        ["algorithm", ranker.algorithm],
        ...Object.entries(ranker.parameters),
        ...Object.entries(ranker.policy),
      ].map(([term, value]) => [term.replaceAll("_", " "), shown(value)]),
      ([term, value]) => h("div", { class: "facts-row" }, h("dt", {}, term), h("dd", {}, value)),
    );
  }

  function drawWorth() {
    const { estimates, reward } = series.series;
    const offered = [...Object.keys(ranker.estimates.value), "answers"];
    offer(measure, offered, shortName);
    const chosen = measure.value;
    if (chosen === "answers") {
      worth.draw({ ...stretches(name, reward, series.series.learnt, (one) => one.reward), up: "mean feedback" });
      tell(
        summary,
        "Mean observed feedback, exploration included. Each point is the mean of its own stretch of time, not of all time.",
      );
      return;
    }
    const of = (suffix) => carried(estimates.map((one) => one[chosen + suffix]));
    const lines = [{ kind: "own", label: name, values: of(""), low: of(".low"), high: of(".high") }];
    if (other) {
      const theirs = carried(other.series.estimates.map((one) => one[chosen]));
      lines.push(rivalLine(axis().xs, theirs));
    }
    worth.draw({ ...axis(), lines, up: nameOf(chosen) });
    tell(summary, inWords(chosen));
  }

  /** What the interval says, what regret there is, and why something is not shown. */
  function inWords(chosen) {
    const value = ranker.estimates.value[chosen];
    const regret = ranker.estimates.regret[chosen];
    const complete = !(Object.keys(ranker.estimates.value)[0] in NAMES); // the observed one is first
    const how =
      HOW[chosen] ??
      (complete
        ? `${shortName(chosen)} of whole lists, as observed`
        : `${shortName(chosen)} of whole lists, estimated from what exploration reveals below the top`);
    const lost = regret ? ` Regret per list against the best fixed order: ${decimal(regret.mean)}, ${between(regret)}.` : "";
    const reasons = new Map();
    for (const [name, why] of Object.entries(ranker.not_estimated))
      reasons.set(why, [...(reasons.get(why) ?? []), shortName(name)]);
    const hidden = [...reasons].map(([why, names]) => ` Not shown: ${names.join(", ")}. ${why}`).join("");
    return `${how}: ${decimal(value.mean)} over ${plural(value.rounds, "list")}, with 95% probability ${between(value)}, however often you look.${lost}${hidden}`;
  }

  const placesOf = ({ at, decisions }) => {
    let sum = 0;
    return along.value === "time" ? at : decisions.map((n) => (sum += n));
  };

  function axis() {
    const { at, decisions } = series.series;
    let sum = 0;
    const before = decisions.map((n) => (sum += n));
    const time = along.value === "time";
    return {
      xs: placesOf(series.series),
      time,
      across: time ? "time" : "lists shown",
      name: (i) => `After ${plural(before[i], "list")}, ${moment(at[i])}`,
    };
  }

  /** The other ranker's values where ours are: the last that it had there. */
  function rivalLine(xs, values) {
    const found = lastNotBeyond(placesOf(other.series), xs);
    return { kind: "other", label: other.name, values: found.map((i) => (i < 0 ? null : values[i])), rough: true };
  }

  /** A mean for each of a few stretches of time, where each bucket counts for as much as happened in it. */
  function stretches(label, values, weights, theirs) {
    const { xs, name: when, ...rest } = axis();
    const size = Math.max(1, Math.ceil(xs.length / POINTS));
    const ends = stretchEnds(xs.length, size);
    const means = ends.map((end, i) => {
      let [sum, weight] = [0, 0];
      for (let j = i ? ends[i - 1] + 1 : 0; j <= end; j += 1) {
        sum += (values[j] ?? 0) * weights[j];
        weight += weights[j];
      }
      return weight ? sum / weight : null;
    });
    const places = ends.map((i) => xs[i]);
    const lines = [{ kind: "own", label, values: means }];
    if (other && theirs) lines.push(rivalLine(places, carried(theirs(other.series))));
    return { ...rest, xs: places, name: (i) => when(ends[i]), lines, least: 0 };
  }

  function drawRest() {
    const { exploration, delay_seconds: waits, decisions, answers: heard } = series.series;
    explored.draw({ ...stretches("exploration", exploration, decisions, (one) => one.exploration), up: "of the lists" });
    delay.draw({ ...stretches("mean delay", waits, heard, (one) => one.delay_seconds), up: "mean delay" });
    const { at_most_seconds: edges, answers } = series.delays;
    const total = answers.reduce((sum, n) => sum + n, 0);
    const labels = [...edges.map((edge) => `up to ${duration(edge).replace(".0", "")}`), "longer"];
    const some = answers
      .map((n, i) => ({ label: labels[i], count: n, told: percent(n / total) }))
      .filter((one) => one.count);
    delays.replaceChildren(total ? bars(some) : "");
  }

  return {
    name,
    update,
    inspect: (id) => looking.show(id),
    focus: () => byId("ranker-title").focus({ preventScroll: true }),
    close: () => {
      gone = true;
      table.close();
      clearTimeout(planned);
    },
  };
}

/**
 * The last bucket of each stretch of `size` buckets. The newest bucket is still being filled, and a mean of a few lists
 * means little: it belongs to the stretch of the one before it.
 */
export function stretchEnds(n, size) {
  if (n < 2) return n ? [0] : [];
  const ends = [];
  for (let i = n - 2; i >= 0; i -= size) ends.unshift(i);
  return [...ends.slice(0, -1), n - 1];
}

/** Offer these values, with their names, where they are not the ones that are offered. */
function offer(select, values, nameOfOne) {
  const there = [...select.options].map((one) => one.value);
  if (there.length === values.length && there.join() === values.join()) return;
  const chosen = select.value;
  select.replaceChildren(...values.map((value) => h("option", { value }, nameOfOne(value))));
  if (values.includes(chosen)) select.value = chosen;
}

/** Where nothing was learnt, the estimate stays what it was. */
function carried(values) {
  let last = null;
  return values.map((value) => {
    last = value ?? last;
    return last;
  });
}

/** Make the children anew only where something in them changed. */
function put(parent, entries, make) {
  const told = JSON.stringify(entries);
  if (parent.dataset.told === told) return;
  parent.dataset.told = told;
  parent.replaceChildren(...entries.map(make));
}
