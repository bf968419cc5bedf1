// Try it: the visitor is the user of an app that suggests ways to unwind and asks about the first suggestion only.
import { ask, newId, path } from "./api.js";
import { movingOrder } from "./order.js";
import { byId, count, h, list, plural, say, tell } from "./words.js";

const NAME = "try-it";
const ITEMS = ["Take a walk", "Meditate", "Listen to music", "Call a friend", "Have a cup of tea"];
const CROWD = 100;
const TURN = 2 * ITEMS.length; // answers in each of the first turns of RTop1F ...
const FIRST = 8 * ITEMS.length ** 2; // ... and how long that lasts

const said = new Map(); // what you said last, by item
let parts = null;
let shown = null; // the list on the screen
let order = null;
let crowd = false; // whether others are answering just now

/** Show the view; the ranker is made when somebody wants to begin. */
export async function openTry() {
  if (parts) return;
  try {
    const { rankers } = await ask("/v1/rankers");
    const there = rankers.find((one) => one.name === NAME);
    if (there) await begin(there);
    else invite();
  } catch (error) {
    wrong(error);
  }
}

function invite() {
  byId("try").replaceChildren(h("div", { class: "card" },
    h("p", {}, "Imagine an app that suggests ways to unwind. It shows a list, asks you about the ", h("strong", {}, "first suggestion only"), ", and puts a better list together from that."),
    h("p", {}, "You know what relaxes you; the app does not. Tell it, one answer at a time, and watch it find out."),
    h("button", { class: "main", id: "try-begin", onclick: make }, "Begin")));
}

function make() {
  ask("/v1/rankers", { name: NAME, algorithm: "RTop1F", items: ITEMS }).then(begin).catch(wrong);
}

function wrong(error) {
  byId("try").append(h("p", { class: "wrong", role: "alert" }, `That did not work: ${error.message}`));
}

async function begin(ranker) {
  order = movingOrder({ label: "What it has learnt, best first", note: (name) => ({ 1: "you: helps", 0: "you: does not" })[said.get(name)] });
  parts = {
    top: h("strong", { id: "try-top" }),
    why: h("p", { class: "small soft" }),
    rest: h("ol", { class: "rest", start: 2, "aria-label": "The rest of the list" }),
    yes: h("button", { class: "main", id: "try-yes", onclick: () => answer(1) }, "It helps me"),
    no: h("button", { id: "try-no", onclick: () => answer(0) }, "Not for me"),
    news: h("p", { class: "news", id: "try-news", role: "status" }, "Answer for the first suggestion: nobody will ask you about the others."),
    turn: h("progress", { max: TURN, id: "try-turn" }),
    turnWords: h("label", { for: "try-turn" }),
    people: h("button", { id: "try-people", onclick: others }, `Let ${CROWD} people like me answer`),
    rounds: h("p", { class: "small soft" }),
  };
  byId("try").replaceChildren(h("div", { class: "try-grid" },
    h("div", {}, h("div", { class: "app" }, h("h2", {}, "Ways to unwind"), h("p", { class: "soft" }, "Suggested for you, now"),
      h("div", { class: "top" }, parts.top, parts.why, h("div", { class: "ask", role: "group", "aria-label": "Does the first suggestion help you?" }, parts.yes, parts.no)),
      parts.rest)),
    h("div", { class: "card" }, h("h2", {}, "What it has learnt"), parts.news, order.element,
      h("div", { class: "turn" }, parts.turnWords, parts.turn),
      h("div", { class: "row" }, parts.people, h("button", { id: "try-again", onclick: again }, "Start over")), parts.rounds,
      h("p", { class: "small soft" }, "Every suggestion gets its turn on top, even unlikely ones: nothing would ever be heard about them otherwise. When all had theirs, the order is set anew. The list you see is that order, shaken a little at first and less and less later.  ",
        h("a", { href: `#ranker/${NAME}` }, "See this ranker in numbers")))));
  take(ranker);
  await next();
}

/** Show what the ranker knows now; tell what moved. */
function take(ranker) {
  const before = order.names ?? [];
  const changed = order.show(ranker.current);
  order.names = ranker.current;
  const into = ranker.rounds % TURN;
  const early = ranker.rounds < FIRST;
  parts.turn.hidden = !early;
  parts.turn.value = into;
  tell(parts.turnWords, early ? `This turn: ${into} of ${TURN} answers heard, then the order is set anew` : "It knows a good deal now: turns get longer, and it tries out less and less.");
  tell(parts.rounds, `${plural(ranker.rounds, "answer")} so far, from you and people like you.`);
  if (!changed.length) return null;
  const rose = changed.filter((name) => before.indexOf(name) > ranker.current.indexOf(name));
  return `The order changed: ${list(rose.slice(0, 2).map((name) => `${name} rose to place ${ranker.current.indexOf(name) + 1}`))}.`;
}

async function next() {
  shown = await ask(path(NAME, "rank"), { decision_id: newId(), context: { from: "the page" } });
  const [story] = await Promise.all([ask(path(NAME, "decisions", shown.decision_id)), ask(path(NAME, "activate"), { decision_id: shown.decision_id })]);
  tell(parts.top, shown.items[0]);
  tell(parts.why, story.explored ? "On top to be tried out: the app wants to hear about it." : "On top because the app thinks so, as far as it knows.");
  parts.rest.replaceChildren(...shown.items.slice(1).map((name) => h("li", {}, name)));
  enable(true);
}

function enable(on) {
  for (const part of [parts.yes, parts.no]) part.disabled = !on || crowd;
}

async function answer(value) {
  const focused = document.activeElement;
  const item = shown.items[0];
  enable(false);
  try {
    await ask(path(NAME, "feedback"), { decision_id: shown.decision_id, relevance: [value] });
    said.set(item, value);
    const news = take(await ask(path(NAME)));
    await next();
    tell(parts.news, news ?? `Noted: ${item} ${value ? "helps" : "is not for you"}.`);
    say(`Next suggestion: ${shown.items[0]}. Does it help you?`);
    focused?.focus();
  } catch (error) {
    wrong(error);
  }
}

/** People whose taste is what you said so far, with a change of mind now and then. */
async function others() {
  if (crowd) {
    crowd = false;
    return;
  }
  crowd = true;
  enable(false);
  let news = null;
  try {
    for (let i = 1; crowd && i <= CROWD; i += 1) {
      const { decision_id, items } = await ask(path(NAME, "rank"), { decision_id: newId(), context: { from: "people like the visitor" } });
      const taste = said.has(items[0]) ? 0.1 + 0.8 * said.get(items[0]) : 0.5;
      await ask(path(NAME, "feedback"), { decision_id, relevance: [Math.random() < taste ? 1 : 0] });
      tell(parts.people, `Stop (${i} of ${CROWD})`);
      if (i % 5 === 0) news = take(await ask(path(NAME))) ?? news;
    }
    news = take(await ask(path(NAME))) ?? news;
    tell(parts.news, news ?? "They agreed: the order stays.");
  } catch (error) {
    wrong(error);
  }
  crowd = false;
  tell(parts.people, `Let ${CROWD} people like me answer`);
  await next();
}

async function again() {
  crowd = false;
  said.clear();
  try {
    await ask(path(NAME, "reset"), {});
    take(await ask(path(NAME)));
    await next();
    tell(parts.news, `Forgotten. ${count(ITEMS.length)} suggestions, and it knows nothing about you.`);
  } catch (error) {
    wrong(error);
  }
}
