// The ranker beside the application's own list: lift with its interval, promotion; and guard rails.
import { ask, newId, path } from "./api.js";
import { count, decimal, h, percent, s, tell } from "./format.js";
import { runner } from "./outcome.js";
import { linear } from "./scale.js";

const WIDTH = 400;
const HEIGHT = 56;
const EDGE = 26;
const NO_TRIAL =
  "No request has brought a baseline yet. Send your own order with a request (baseline), and the lift of the ranker's lists over it is shown here.";

/** For one ranker, in its `parts` of the page. */
export function trialView(name, parts) {
  const { lift, trial, promote, rails } = parts;
  const words = parts["lift-words"];
  const share = promote.querySelector("input");
  const fields = [...rails.querySelectorAll("input")];
  const promoting = runner(parts["promote-done"], parts["promote-failed"]);
  const railing = runner(parts["rails-done"], parts["rails-failed"]);
  let now = {}; // the guard rails as they stand
  let drawn = "";

  promote.onsubmit = (event) => {
    event.preventDefault();
    const told = { share: Number(share.value) / 100, event_id: newId() };
    promoting(() => ask(path(name, "promote"), told), "Promoted");
  };
  rails.onsubmit = (event) => {
    event.preventDefault();
    const wanted = Object.fromEntries(
      fields.map((one) => [one.name, fromField(one)]).filter(([field, value]) => value !== now[field]),
    );
    railing(() => ask(path(name, "policy"), { ...wanted, event_id: newId() }), "Changed");
  };

  function update(ranker) {
    const told = JSON.stringify([ranker.trial, ranker.policy]);
    if (told === drawn) return;
    drawn = told;
    fill(ranker);
    drawTrial(ranker.trial);
  }

  /** What is set now, in the fields; a field that somebody is writing in is left alone. */
  function fill(ranker) {
    const { policy, trial: found } = ranker;
    now = { exploration_cap: 1, displacement: 0, holdout: 0, ...policy };
    for (const one of fields) {
      if (one !== document.activeElement) one.value = toField(one, now[one.name]);
    }
    const live = found ? found.live / (1 - found.holdout) : Number(policy.apprentice !== true);
    if (share !== document.activeElement) share.value = rounded(100 * live);
  }

  function drawTrial(found) {
    promote.hidden = !found;
    if (!found) {
      tell(words, NO_TRIAL);
      lift.replaceChildren();
      trial.replaceChildren();
      return;
    }
    tell(words, inWords(found.lift));
    lift.replaceChildren(found.lift ? interval(found.lift) : "");
    const facts = [
      ["Ranker's list shown to", percent(found.live)],
      ["Held out", percent(found.holdout)],
      ["Lists of the ranker with feedback", count(found.ranker_lists)],
      ["Lists of the baseline with feedback", count(found.baseline_lists)],
      ["Agreement by position", percent(found.agreed)],
      ["Baseline, where both agree", decimal(found.at_least)],
    ];
    trial.replaceChildren(
      ...facts.map(([term, value]) => h("div", { class: "facts-row" }, h("dt", {}, term), h("dd", {}, value))),
    );
  }

  return { update, buttons: [promote.querySelector("button"), rails.querySelector("button")] };
}

const rounded = (x) => Number(x.toFixed(3));
const isShare = (field) => field.name !== "displacement";
const toField = (field, value) => (isShare(field) ? rounded(100 * value) : value);
const fromField = (field) => Number(field.value) / (isShare(field) ? 100 : 1);
const signed = (x) => `${x > 0 ? "+" : ""}${decimal(x)}`;

/** What the interval says. */
export function inWords(found) {
  if (!found) return "The two are compared at the same time only: on lists where chance chose between them. Hold out a share, or promote the ranker to a share, and the lift is shown here.";
  const verdict =
    found.low > 0 ? "The ranker is better" : found.high < 0 ? "The baseline is better" : "Not told apart yet";
  return `${verdict}: a lift of ${signed(found.mean)} in mean reward (from 0 to 1), 95% interval ${signed(found.low)} to ${signed(found.high)}. Lists of the same time are compared, and it holds at all times: stop when you like.`;
}

/** An interval as a picture: where there is no difference, and where the mean may be. */
export function interval(found, { words = inWords(found), middle = 0, format = signed, least = 0, most = Infinity } = {}) {
  const wide = Math.max(least, Math.abs(found.low - middle), Math.abs(found.high - middle)) * 1.05;
  const reach = Math.min(wide, most);
  const x = linear([middle - reach, middle + reach], [EDGE, WIDTH - EDGE]);
  const kind = found.low > middle ? "better" : found.high < middle ? "worse" : "open";
  const label = (at, text) => s("text", { x: x(at), y: HEIGHT - 4, "text-anchor": "middle" }, text);
  const line = (from, to, y1, y2, name) => s("line", { class: name, x1: x(from), x2: x(to), y1, y2 });
  return s(
    "svg",
    { class: `lift ${kind}`, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words },
    line(middle - reach, middle + reach, 20, 20, "axis"),
    line(middle, middle, 4, 36, "zero"),
    line(found.low, found.high, 20, 20, "interval"),
    s("circle", { class: "mean", cx: x(found.mean), cy: 20, r: 5 }),
    label(middle - reach * 0.93, format(middle - reach)),
    label(middle, middle ? format(middle) : "0"),
    label(middle + reach * 0.93, format(middle + reach)),
  );
}
