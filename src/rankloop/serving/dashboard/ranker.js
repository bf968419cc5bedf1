// One ranker: how it does, the order it holds best, what it explores, how late people answer, and whether all is well.
import { ask, path } from "./api.js";
import { bars, lineChart } from "./charts.js";
import { inspector } from "./inspector.js";
import { movingOrder } from "./order_list.js";
import {
  ago,
  byId,
  count,
  decimal,
  duration,
  h,
  learner,
  moment,
  percent,
  plural,
  say,
  tell,
} from "./format.js";

const REFRESH = 1000; // milliseconds between two looks at the roll-ups, however much happens
const POINTS = 60; // in a chart of what happened in each stretch of time
const SMALL = { height: 150 };
const SHORT = { dcg: "DCG", clicks: "clicks", answers: "the answers alone" };
const wholePercent = (share) => `${Math.round(100 * share)}%`;
const shortName = (measure) => SHORT[measure] ?? `${measure[0].toUpperCase()}${measure.slice(1)}`;
const nameOf = (measure) =>
  measure === "clicks" ? "Clicks on a list" : `${shortName(measure)} of the whole list`;

/** The view of one ranker, for `element`. */
export function rankerView(element, name, choose) {
  const root = byId("ranker-view").content.cloneNode(true);
  const parts = Object.fromEntries(
    [...root.querySelectorAll("[data-part]")].map((one) => [one.dataset.part, one]),
  );
  tell(root.getElementById("ranker-title"), name);
  element.replaceChildren(root);
  const order = movingOrder({ label: "Current order, best first" });
  const worth = lineChart({ describe: "Worth of a list", format: decimal });
  const explored = lineChart({
    ...SMALL,
    describe: "Share of lists that try something out",
    format: percent,
    ticks: wholePercent,
  });
  const delay = lineChart({
    ...SMALL,
    describe: "Mean time until an answer came",
    format: duration,
    ticks: duration,
  });
  const looking = inspector(name, parts, choose);
  for (const [part, { element: made }] of Object.entries({ order, worth, explored, delay }))
    parts[part].append(made);
  const { tiles, badges, health, measure, summary, delays } = parts;
  measure.onchange = () => drawWorth();
  let ranker = null;
  let series = null;
  let now = Date.now();
  let planned = null;
  let gone = false;
  let announced = 0;

  function update(fresh, time) {
    ranker = fresh;
    now = time;
    drawTiles();
    drawHealth();
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
      const [told] = await Promise.all([ask(path(name, "series")), looking.refresh(ranker)]);
      if (gone) return;
      series = told;
      drawWorth();
      drawRest();
    } catch {
      // The service is away; the stream says so, and the next news brings us back here.
    } finally {
      planned = null;
    }
  }

  function drawTiles() {
    const { counts } = ranker;
    const answered = counts.decisions ? counts.learnt / counts.decisions : null;
    const [main] = Object.entries(ranker.estimates.value);
    put(
      tiles,
      [
        ["Lists shown", count(counts.decisions), `${count(counts.learnt)} answers learnt from`],
        ["Answered", percent(answered), "of all lists so far"],
        ["Tries something out", percent(ranker.exploration_share), "of all lists so far"],
        [
          main ? nameOf(main[0]) : "Worth",
          main?.[1] ? decimal(main[1].mean) : "–",
          main?.[1] ? `95% sure: ${decimal(main[1].low)} to ${decimal(main[1].high)}` : "too early to tell",
        ],
      ],
      ([term, value, more]) =>
        h("div", { class: "tile" }, h("dt", {}, term), h("dd", {}, value, h("small", {}, more))),
    );
    put(
      badges,
      [
        [`${ranker.algorithm}: ${learner(ranker.algorithm)}`, ""],
        ...(ranker.frozen ? [["frozen: it does not learn now", "warn"]] : []),
      ],
      ([words, kind]) => h("span", { class: `badge ${kind}` }, words),
    );
  }

  function drawHealth() {
    const { counts } = ranker;
    const lag = ranker.last_seq - ranker.model_seq;
    put(
      health,
      [
        ["Lag", lag > 0 ? plural(lag, "row") : "none"],
        ["Last event", ago(ranker.last_at, now)],
        ["Log", plural(ranker.last_seq, "row")],
        ["Snapshot", ranker.snapshot_seq ? `at row ${count(ranker.snapshot_seq)}` : "none yet"],
        ["Too late", plural(counts.late, "answer")],
        ["Never answered", plural(counts.expired, "list")],
        [
          "Waiting",
          ranker.parked ? `${plural(ranker.parked, "answer")} for an unknown list` : plural(0, "answer"),
        ],
        ["Of no use", plural(counts.dead, "answer")],
        ["Contradictions", count(counts.conflicts)],
        ["State", ranker.state_hash.slice(0, 16)],
      ],
      ([term, value]) => h("div", { class: "facts-row" }, h("dt", {}, term), h("dd", {}, value)),
    );
  }

  function drawWorth() {
    const { estimates, reward } = series.series;
    const known = [...new Set(estimates.flatMap((one) => Object.keys(one)))].filter(
      (key) => !/\.(low|high|random|frozen)$/.test(key),
    );
    const offered = [...known, "answers"];
    if ([...measure.options].map((one) => one.value).join() !== offered.join()) {
      measure.replaceChildren(...offered.map((key) => h("option", { value: key }, shortName(key))));
    }
    const chosen = measure.value;
    if (chosen === "answers") {
      worth.draw(stretches("mean answer", reward, series.series.learnt));
      tell(
        summary,
        "What people said about the sliver they were asked about, lists that try something out included. Not an average: each point is its own stretch of time.",
      );
      return;
    }
    const of = (suffix) => carried(estimates.map((one) => one[chosen + suffix]));
    const lines = [{ kind: "own", label: name, values: of(""), low: of(".low"), high: of(".high") }];
    if (of(".frozen").some((value) => value !== null)) {
      lines.push(
        { kind: "frozen", label: "never learning", values: of(".frozen") },
        { kind: "random", label: "random order", values: of(".random") },
      );
    }
    worth.draw({ ...axis(), lines });
    const regret = ranker.estimates.regret[chosen];
    const sure = "Average over all lists so far; the band holds the truth 95 times in 100.";
    const lost = regret
      ? ` The best fixed order would have been worth ${decimal(regret.mean)} more a list (${decimal(regret.low)} to ${decimal(regret.high)}).`
      : "";
    const how =
      chosen === "clicks"
        ? ""
        : " Only the top is ever told: the rest is estimated from the lists that try something out, whose chances are known exactly.";
    tell(summary, `${sure}${lost}${how}`);
  }

  function axis() {
    const { at, decisions } = series.series;
    let sum = 0;
    const xs = decisions.map((n) => (sum += n));
    return { xs, name: (i) => `After ${plural(xs[i], "list")}, ${moment(at[i])}` };
  }

  /** A mean for each of a few stretches of time, where each bucket counts for as much as happened in it. */
  function stretches(label, values, weights) {
    const { xs, name: when } = axis();
    const size = Math.max(1, Math.ceil(xs.length / POINTS));
    const ends = xs.map((_, i) => i).filter((i) => i % size === size - 1 || i === xs.length - 1);
    const means = ends.map((end, i) => {
      let [sum, weight] = [0, 0];
      for (let j = i ? ends[i - 1] + 1 : 0; j <= end; j += 1) {
        sum += (values[j] ?? 0) * weights[j];
        weight += weights[j];
      }
      return weight ? sum / weight : null;
    });
    return {
      xs: ends.map((i) => xs[i]),
      name: (i) => when(ends[i]),
      lines: [{ kind: "own", label, values: means }],
      least: 0,
    };
  }

  function drawRest() {
    const { exploration, delay_seconds: waits, decisions, answers: heard } = series.series;
    explored.draw(stretches("tries something out", exploration, decisions));
    delay.draw(stretches("mean delay", waits, heard));
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
      clearTimeout(planned);
    },
  };
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
