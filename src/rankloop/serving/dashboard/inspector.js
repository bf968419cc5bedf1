// The inspector: the newest lists, and the history of one, from its rows in the log.
import { Refused, ask, path } from "./api.js";
import { answerInWords, clock, count, decimal, duration, h, list, moment, say } from "./format.js";

/** For one ranker, in its `parts` of the page; `choose(id)` is called when somebody picks a list. */
export function inspector(name, parts, choose) {
  const { newest: body, history, find } = parts;
  const card = history.parentElement;
  find.onsubmit = (event) => {
    event.preventDefault();
    const wanted = find.querySelector("input").value.trim();
    if (wanted) choose(wanted);
  };
  let chosen = null;
  let open = false; // whether more may still happen to the chosen list
  let feedback = "relevance";

  async function refresh(ranker) {
    feedback = ranker.feedback;
    const { decisions } = await ask(path(name, "decisions"));
    const first = decisions.find((one) => one.values) ?? decisions[0];
    if (chosen === null && first) await show(first.decision_id, { focus: false });
    else if (open) await show(chosen, { focus: false });
    // Whoever is about to press a button must not find another one under the pointer.
    if (body.contains(document.activeElement) || body.matches(":hover")) return;
    body.replaceChildren(...decisions.map(row));
  }

  function row(one) {
    const pick = { type: "button", "data-list": one.decision_id, onclick: () => choose(one.decision_id) };
    const cells = [
      clock(one.at),
      h("button", pick, one.top),
      answerInWords(one.values, feedback),
      kindOf(one, feedback),
    ];
    const kind = { class: one.decision_id === chosen && "chosen" };
    return h("tr", kind, ...cells.map((cell) => h("td", {}, cell)));
  }

  async function show(id, { focus = true } = {}) {
    chosen = id;
    try {
      const found = await ask(path(name, "decisions", id));
      if (chosen !== id) return;
      open = !found.answered && !found.expired;
      history.replaceChildren(historyOf(found, feedback));
      if (focus) say(`History of the list with ${found.items[0]} on top`);
    } catch (error) {
      open = false;
      const missing = error instanceof Refused && error.status === 404;
      const words = missing ? `${name} has no list with decision ID ${id}.` : error.message;
      history.replaceChildren(h("p", { class: "wrong", role: "alert" }, words));
    }
    for (const button of body.querySelectorAll("button")) {
      button.closest("tr").classList.toggle("chosen", button.dataset.list === id);
    }
    if (focus) {
      card.focus({ preventScroll: true });
      card.scrollIntoView({ block: "nearest" });
    }
  }

  return { refresh, show };
}

function historyOf(told, feedback) {
  const steps = [
    step(
      moment(told.at),
      h(
        "p",
        {},
        h("strong", {}, "A list was requested. "),
        `The ranker had read ${count(told.model_seq)} rows of its log. `,
        why(told, feedback),
      ),
      places(told),
    ),
  ];
  if (told.context !== null) steps.push(step("context of the request", h("pre", {}, JSON.stringify(told.context))));
  for (const row of told.rows.filter((one) => one.kind !== "decision")) {
    const later =
      row.at < told.at ? "before the list was written" : `${duration((row.at - told.at) / 1000)} later`;
    steps.push(step(`${later}, row ${count(row.seq)}`, h("p", {}, ...happened(row, told, feedback))));
  }
  if (!told.answered && !told.expired)
    steps.push(
      step(
        "now",
        h(
          "p",
          {},
          `No feedback yet. The deadline is ${moment(told.deadline)}; before it, missing feedback is not taken as negative.`,
        ),
      ),
    );
  return h(
    "div",
    {},
    h("ol", { class: "history" }, ...steps),
    h(
      "details",
      { class: "small soft" },
      h("summary", {}, "Details"),
      h(
        "dl",
        { class: "facts" },
        ...facts({
          "decision ID": told.decision_id,
          row: count(told.seq),
          "random key": told.key,
          "item changes before": count(told.generation),
        }),
      ),
    ),
  );
}

function step(when, ...content) {
  return h("li", {}, h("span", { class: "when" }, when), ...content);
}

function kindOf(one, feedback) {
  if (one.shown_by === "baseline") return "baseline";
  if (one.guard_rail === "greedy") return "best known";
  return feedback === "clicks" ? "drawn" : one.explored ? "exploration" : "best known";
}

const RAILS = {
  moved: " Its items were then moved into reach of their places in the baseline.",
  groups: " It ordered groups of neighbours of the baseline, each on its own.",
};

function why(told, feedback) {
  if (told.shown_by === "baseline") return "The application's own list was shown.";
  if (told.guard_rail === "greedy")
    return "The exploration cap kept it from exploring: it showed the best list of the moment.";
  return drawnHow(told, feedback) + (RAILS[told.guard_rail] ?? "");
}

function drawnHow(told, feedback) {
  const beside = told.propensities ? " Beside each item: the probability that it is shown at this position." : "";
  if (feedback === "clicks") return `The list was drawn at random, better lists with higher probability.${beside}`;
  if (told.explored)
    return `Exploration: ${told.items[0]} was put on top to observe feedback on it.${beside}`;
  return told.candidates
    ? `It showed the best order known.${beside}`
    : "It showed the best order known, with some random noise that shrinks as more is learnt.";
}

function places(told) {
  const most = 10;
  const rows = told.items.slice(0, most).map((item, i) => {
    const chance = told.propensities?.[i];
    const id = `place-${i}`;
    return h(
      "li",
      {},
      h("span", { class: "soft" }, `${i + 1}`),
      h("span", { id }, item),
      chance === undefined ? h("span") : h("progress", { max: 1, value: chance, "aria-labelledby": id }),
      h("span", { class: "num" }, chance === undefined ? "" : decimal(chance)),
    );
  });
  if (told.items.length > most)
    rows.push(h("li", { class: "soft" }, h("span"), `and ${told.items.length - most} more`));
  return h(
    "ol",
    {
      class: "chances",
      "aria-label": told.propensities
        ? "The list, with the probability of each item at its position"
        : "The list",
    },
    ...rows,
  );
}

const NOT_DRAWN = "It counts. The ranker did not draw this list, and learnt from it only if it can learn from any.";
const CAME_TO = {
  accepted: "It was learnt from.",
  duplicate: "It is a duplicate, and was not learnt from again.",
  late: "It came after the deadline.",
  conflict: "It contradicts earlier feedback, so it was logged and not learnt from.",
  parked: "Its list was not known yet, so it is waiting.",
  unknown: "It could not be used: a dead letter.",
  expired: "",
};

function happened(row, told, feedback) {
  const own = told.shown_by === "ranker" && told.guard_rail !== "greedy";
  const came = row.outcome === "accepted" && !own ? NOT_DRAWN : CAME_TO[row.outcome];
  const end = ` ${came ?? ""}`;
  if (row.kind === "activate")
    return [h("strong", {}, "The list was shown."), row.outcome === "accepted" ? "" : end];
  if (row.kind === "expire")
    return [
      h("strong", {}, "The deadline passed. "),
      told.activated && feedback === "clicks"
        ? "The list had been shown, so missing feedback counts as no click."
        : "Missing feedback was not learnt from.",
    ];
  if (row.kind === "conflict")
    return [h("strong", {}, "Another event came with the same ID. "), CAME_TO.conflict];
  const about = feedback === "relevance" && row.values?.length === 1 ? `${told.items[0]}: ` : "";
  const first =
    row.values && row.values.length > 1 ? ` Top of the list: ${list(told.items.slice(0, 3))}.` : "";
  return [h("strong", {}, `Feedback: ${about}${answerInWords(row.values, feedback)}.`), first, end];
}

export function facts(pairs) {
  return Object.entries(pairs).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
}
