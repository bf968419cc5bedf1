// The frame: which view is open, the stream that updates all of them, and the state of the service.
import { Refused, ask, listen, useKey } from "./api.js";
import { sparkline } from "./charts.js";
import { rankerView } from "./ranker.js";
import { creator } from "./create.js";
import { openTry } from "./tryit.js";
import { byId, h, plural, tell } from "./format.js";

const SPARKS = 2000; // milliseconds between two looks at the sparklines
const known = new Map(); // rankers as they stand, by name
let skew = 0; // the service's clock minus ours
let view = null;
let planned = null;

// --- where we are: #rankers, #ranker/NAME, #ranker/NAME/ID, #try

function place() {
  const [where, ...rest] = location.hash.slice(1).split("/");
  return {
    where: where || "rankers",
    name: rest[0] && decodeURIComponent(rest[0]),
    id: rest[1] && decodeURIComponent(rest[1]),
  };
}

const link = (...parts) => `#${["ranker", ...parts.map(encodeURIComponent)].join("/")}`;

function go() {
  const { where, name, id } = place();
  if (where === "main") return;
  const trying = where === "try";
  byId("view-try").hidden = !trying;
  byId("view-rankers").hidden = trying;
  for (const [id_, here] of [
    ["to-try", trying],
    ["to-rankers", !trying],
  ]) {
    if (here) byId(id_).setAttribute("aria-current", "page");
    else byId(id_).removeAttribute("aria-current");
  }
  document.title = trying ? "Try it · rankloop" : `${name ? `${name} · ` : ""}rankloop`;
  if (trying) openTry();
  else openRanker(name, id);
}

function openRanker(wanted, id) {
  const name = wanted ?? [...known.keys()][0];
  if (name === undefined || !known.has(name)) {
    if (wanted && known.size)
      byId("ranker").replaceChildren(h("p", { class: "card" }, `There is no ranker called ${wanted}.`));
    return;
  }
  if (view?.name !== name) {
    view?.close();
    const choose = (chosen) => {
      const target = link(name, chosen);
      if (location.hash === target) view.inspect(chosen);
      else location.hash = target;
    };
    view = rankerView(byId("ranker"), name, choose, () => [...known.keys()].filter((one) => one !== name));
    view.update(known.get(name), Date.now() + skew);
    if (wanted && !id) view.focus();
    markChosen();
  }
  if (id) view.inspect(id);
}

// --- the list of rankers

const rows = new Map(); // the list's rows, by name

function drawRow(ranker) {
  const { name } = ranker;
  if (!rows.has(name)) {
    const words = [h("strong", {}, name), sparkline([], name), h("span", { class: "soft" })];
    rows.set(name, h("a", { href: link(name) }, ...words));
    byId("rankers").append(h("li", {}, rows.get(name)));
    byId("none").hidden = true;
  }
  tell(rows.get(name).lastChild, `${ranker.algorithm}, ${plural(ranker.rounds, "round")}`);
}

function markChosen() {
  for (const [name, row] of rows) {
    if (view?.name === name) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
}

async function drawSparks() {
  try {
    const { sparks } = await ask("/v1/sparks");
    for (const [name, row] of rows) row.querySelector("svg").replaceWith(sparkline(sparks[name] ?? [], name));
  } catch {
    // The service is away; the stream says so.
  } finally {
    planned = null;
  }
}

// --- the stream

const events = {
  ranker(told) {
    const first = !known.has(told.name);
    known.set(told.name, told);
    drawRow(told);
    planned ??= setTimeout(drawSparks, first ? 50 : SPARKS);
    if (view?.name === told.name) view.update(told, Date.now() + skew);
    else if (first && view) view.update(known.get(view.name), Date.now() + skew); // one more to compare with
    if (view?.name !== told.name && (!view || (first && place().name === told.name)) && place().where !== "try") go();
  },
  health(told) {
    skew = told.now - Date.now();
    if (told.ready) status("good", "Live");
    else status("bad", told.broken ? `Read-only: ${told.broken}` : `Not ready: ${told.why}`);
    drawNotices(told.notices);
    if (view && known.has(view.name)) view.update(known.get(view.name), Date.now() + skew);
    byId("none").hidden = known.size + told.rankers > 0;
  },
};

function drawNotices(notices) {
  const list = byId("notices");
  list.hidden = notices.length === 0;
  const words = notices.join("\n");
  if (list.dataset.words === words) return;
  list.dataset.words = words;
  list.replaceChildren(...notices.map((notice) => h("li", {}, notice)));
}

function status(state, words) {
  byId("status").dataset.state = state;
  tell(byId("status"), words);
}

function lost(error) {
  if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
    status("bad", "API key needed");
    return askForKey(error.message);
  }
  status("bad", error instanceof Refused ? error.message : "No connection to the service; trying again");
  return null;
}

function askForKey(why) {
  const form = byId("key");
  form.hidden = false;
  byId("key-field").focus();
  tell(byId("key-error"), sessionStorage.length ? why : "");
  return new Promise((resolve) => {
    form.onsubmit = (event) => {
      event.preventDefault();
      useKey(byId("key-field").value.trim());
      form.hidden = true;
      resolve();
    };
  });
}

tell(
  byId("curl"),
  `curl ${location.origin}/v1/rankers -H 'content-type: application/json' \\
  -d '{"name": "unwind", "algorithm": "TopFTRL", "items": ["walk", "meditate", "music"]}'`,
);
creator((name) => {
  location.hash = link(name);
});
window.addEventListener("hashchange", go);
go();
listen({ onEvent: (kind, told) => events[kind]?.(told), onOpen: () => status("good", "Live"), onLost: lost });
