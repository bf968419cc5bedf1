// Try it: the visitor is the user of an app that suggests ways to unwind and asks about the first suggestion only.
import { ask, newId, path } from "./api.js";
import { movingOrder } from "./order_list.js";
import { byId, count, h, list, plural, say, tell } from "./format.js";

const NAME = "try-it";
const ITEMS = ["Take a walk", "Meditate", "Listen to music", "Call a friend", "Have a cup of tea"];
const CROWD = 100;
const INVITE = `Add ${CROWD} simulated users like me`;

const said = new Map(); // what you said last, by item
let opened = false;
let order = null;
let shown = null; // the list on the screen
let crowd = false; // whether others are answering just now

/** Show the view; the ranker is made when somebody wants to begin. */
export async function openTry() {
  if (opened) return;
  opened = true;
  byId("try-begin").onclick = attempt(async () =>
    begin(await ask("/v1/rankers", { name: NAME, algorithm: "TopFTRL", items: ITEMS })),
  );
  await attempt(async () => {
    const { rankers } = await ask("/v1/rankers");
    const there = rankers.find((one) => one.name === NAME);
    if (there) await begin(there);
    else byId("try-invite").hidden = false;
  })();
}

/** Errors are shown below. */
function attempt(work) {
  return async () => {
    try {
      tell(byId("try-wrong"), "");
      await work();
    } catch (error) {
      tell(byId("try-wrong"), `Error: ${error.message}`);
    }
  };
}

async function begin(ranker) {
  const note = (name) => ({ 1: "you: helps", 0: "you: does not" })[said.get(name)];
  order = movingOrder({ label: "Learnt order, best first", note });
  byId("try-order").replaceChildren(order.element);
  tell(byId("try-people"), INVITE);
  byId("try-yes").onclick = attempt(() => answer(1));
  byId("try-no").onclick = attempt(() => answer(0));
  byId("try-people").onclick = attempt(others);
  byId("try-again").onclick = attempt(again);
  byId("try-invite").hidden = true;
  byId("try-app").hidden = false;
  take(ranker);
  await next();
  enable(true);
}

/** Show what the ranker knows now. */
function take(ranker) {
  order.show(ranker.current);
  tell(byId("try-rounds"), `${plural(ranker.rounds, "answer")} so far, from you and simulated users like you.`);
  return ranker.current;
}

/** What moved, in words; null where nothing did. */
function moves(before, after) {
  const rose = after.filter((name, i) => before.indexOf(name) > i);
  if (!rose.length) return null;
  const told = rose.slice(0, 2).map((name) => `${name} rose to place ${after.indexOf(name) + 1}`);
  return `The order changed: ${list(told)}.`;
}

async function next() {
  shown = await ask(path(NAME, "rank"), { decision_id: newId(), context: { from: "the page" } });
  const about = { decision_id: shown.decision_id };
  const [made] = await Promise.all([
    ask(path(NAME, "decisions", shown.decision_id)),
    ask(path(NAME, "activate"), about),
  ]);
  const tried = "Exploration: on top to learn about it.";
  const best = "On top as one of the best known so far.";
  tell(byId("try-top"), shown.items[0]);
  tell(byId("try-why"), made.explored ? tried : best);
  byId("try-rest").replaceChildren(...shown.items.slice(1).map((name) => h("li", {}, name)));
}

function enable(on) {
  for (const id of ["try-yes", "try-no", "try-again"]) byId(id).disabled = !on;
  byId("try-people").disabled = !on && !crowd; // while others answer, it stops them
}

async function answer(value) {
  const focused = document.activeElement;
  const item = shown.items[0];
  const before = order.names();
  enable(false);
  try {
    await ask(path(NAME, "feedback"), { decision_id: shown.decision_id, relevance: [value] });
    said.set(item, value);
    const after = take(await ask(path(NAME)));
    await next();
    tell(byId("try-news"), moves(before, after) ?? `Noted: ${item} ${value ? "helps" : "does not help"}.`);
    say(`Next suggestion: ${shown.items[0]}. Does it help you?`);
  } finally {
    enable(true);
    focused?.focus();
  }
}

/** Simulated users with the preferences you have shown so far, and some noise. */
async function others() {
  if (crowd) {
    crowd = false; // the button said "Stop"
    byId("try-people").disabled = true;
    return;
  }
  const before = order.names();
  crowd = true;
  enable(false);
  try {
    for (let i = 1; crowd && i <= CROWD; i += 1) {
      await otherOne();
      tell(byId("try-people"), `Stop (${i} of ${CROWD})`);
      if (i % 5 === 0) take(await ask(path(NAME)));
    }
    const after = take(await ask(path(NAME)));
    await next();
    tell(byId("try-news"), moves(before, after) ?? "The order stays the same.");
  } finally {
    crowd = false;
    enable(true);
    tell(byId("try-people"), INVITE);
  }
}

async function otherOne() {
  const context = { from: "simulated users like the visitor" };
  const { decision_id, items } = await ask(path(NAME, "rank"), { decision_id: newId(), context });
  const taste = said.has(items[0]) ? 0.1 + 0.8 * said.get(items[0]) : 0.5;
  await ask(path(NAME, "feedback"), { decision_id, relevance: [Math.random() < taste ? 1 : 0] });
}

async function again() {
  said.clear();
  await ask(path(NAME, "reset"), {});
  take(await ask(path(NAME)));
  await next();
  tell(byId("try-news"), `Reset: ${count(ITEMS.length)} suggestions, and nothing known about you.`);
}
