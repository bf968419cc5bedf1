// A comparison of rankings: the verdict in a sentence, each pair as an interval, stop and promote.
import { ask, newId, path } from "./api.js";
import { count, h, percent, say, tell } from "./format.js";
import { runner } from "./outcome.js";
import { interval } from "./trial.js";

const SURE = 5000; // milliseconds in which a second press confirms

/** For one ranker, in its `parts` of the page: shown where it is a comparison. */
export function comparisonView(name, parts) {
  const { verdict, pairs, stop, decide } = parts;
  const choice = decide.querySelector("select");
  const run = runner(parts["decide-done"], parts["decide-failed"]);
  let drawn = "";
  let sure = 0;

  stop.onclick = () => {
    if (Date.now() - sure > SURE) {
      sure = Date.now();
      tell(stop, "Press again to stop");
      setTimeout(() => tell(stop, "Stop"), SURE);
      return;
    }
    sure = 0;
    run(() => ask(path(name, "stop"), { event_id: newId() }), "Stopped");
  };
  decide.onsubmit = (event) => {
    event.preventDefault();
    run(() => ask(path(name, "promote"), { ranking: choice.value, event_id: newId() }), "Promoted");
  };

  function update(ranker) {
    const found = ranker.comparison;
    parts["comparison-card"].hidden = !found;
    parts["beside-card"].hidden = parts["rails-card"].hidden = Boolean(found);
    const told = JSON.stringify(found);
    if (!found || told === drawn) return;
    if (drawn && found.winner && JSON.parse(drawn).winner !== found.winner) say(found.sentence);
    drawn = told;
    tell(verdict, found.sentence);
    pairs.replaceChildren(...found.pairs.map(pairOf));
    stop.hidden = Boolean(found.shown);
    if (choice.options.length !== found.rankings.length) {
      choice.replaceChildren(...found.rankings.map((value) => h("option", { value }, value)));
      choice.value = found.winner ?? found.rankings[0];
    }
  }

  return { update, buttons: [stop, decide.querySelector("button")] };
}

/** Two rankings: the share of decided searches that the right one won, and its interval. */
function pairOf({ one, other, wins, losses, share, winner }) {
  const decided = wins + losses;
  const counted = `${other} won ${count(losses)} of ${count(decided)} decided searches, ${one} ${count(wins)}`;
  if (!share) return h("p", { class: "small soft" }, `${one} and ${other}: nothing is decided yet.`);
  const found = { mean: losses / decided, low: 1 - share.high, high: 1 - share.low };
  const bounds = `${percent(found.mean)}, with 95% probability between ${percent(found.low)} and ${percent(found.high)}`;
  const words = `${counted}: ${bounds}, however often you look. ${winner ? `${winner} wins.` : "Not told apart yet."}`;
  return h(
    "div",
    { class: "pair" },
    h("p", { class: "ends" }, h("strong", {}, `← ${one}`), h("strong", {}, `${other} →`)),
    interval(found, { words, middle: 0.5, format: percent, least: 0.1, most: 0.5 }),
    h("p", { class: "small soft" }, words),
  );
}
