// The inspector: the newest lists, and the story of one, told from its rows in the log.
import { Refused, ask, path } from "./api.js";
import { answerInWords, clock, count, decimal, duration, h, list, moment, say } from "./format.js";

/** For one ranker, in its `parts` of the page; `choose(id)` is called when somebody picks a list. */
export function inspector(name, parts, choose) {
  const { newest: body, story, find } = parts;
  const card = story.parentElement;
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
      feedback === "clicks" ? "by lot" : one.explored ? "try-out" : "best",
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
      story.replaceChildren(tellStory(found, feedback));
      if (focus) say(`The story of the list with ${found.items[0]} on top`);
    } catch (error) {
      open = false;
      const missing = error instanceof Refused && error.status === 404;
      const words = missing ? `No list of ${name} has the id ${id}.` : error.message;
      story.replaceChildren(h("p", { class: "wrong", role: "alert" }, words));
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

function tellStory(told, feedback) {
  const steps = [
    step(
      moment(told.at),
      h(
        "p",
        {},
        h("strong", {}, "Somebody asked for a list. "),
        `The ranker had taken in ${count(told.model_seq)} rows of its log by then. `,
        why(told, feedback),
      ),
      places(told),
    ),
  ];
  if (told.context !== null) steps.push(step("with it came", h("pre", {}, JSON.stringify(told.context))));
  for (const row of told.rows.filter((one) => one.kind !== "decision")) {
    const later =
      row.at < told.at ? "even before the list was written" : `${duration((row.at - told.at) / 1000)} later`;
    steps.push(step(`${later}, row ${count(row.seq)}`, h("p", {}, ...happened(row, told, feedback))));
  }
  if (!told.answered && !told.expired)
    steps.push(
      step(
        "now",
        h(
          "p",
          {},
          `Nothing has come back yet. There is time until ${moment(told.deadline)}; silence is never taken for a no before that.`,
        ),
      ),
    );
  return h(
    "div",
    {},
    h("ol", { class: "story" }, ...steps),
    h(
      "details",
      { class: "small soft" },
      h("summary", {}, "For the record"),
      h(
        "dl",
        { class: "facts" },
        ...facts({
          id: told.decision_id,
          row: count(told.seq),
          "drawn with key": told.key,
          "items changed before": `${told.generation} times`,
        }),
      ),
    ),
  );
}

function step(when, ...content) {
  return h("li", {}, h("span", { class: "when" }, when), ...content);
}

function why(told, feedback) {
  const beside = told.propensities ? " Beside each item: how likely it was to stand just there." : "";
  if (feedback === "clicks") return `The list was drawn by lot, better ones more often.${beside}`;
  if (told.explored)
    return `This was a try-out: ${told.items[0]} went to the top so that something would be heard about it.${beside}`;
  return told.candidates
    ? `It put first what it held best.${beside}`
    : "It showed what it held best, shaken a little: less so the more it knows.";
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
        ? "The list, with the chance of each item to stand just there"
        : "The list",
    },
    ...rows,
  );
}

const CAME_TO = {
  accepted: "It was learnt from.",
  duplicate: "It had been said before: nothing was learnt twice.",
  late: "It came too late.",
  conflict: "It contradicted what had been said before, so it was kept and not learnt from.",
  parked: "Its list was not known yet, so it waited.",
  unknown: "It could not be used.",
  expired: "",
};

function happened(row, told, feedback) {
  const end = ` ${CAME_TO[row.outcome] ?? ""}`;
  if (row.kind === "activate")
    return [h("strong", {}, "The list was really shown."), row.outcome === "accepted" ? "" : end];
  if (row.kind === "expire")
    return [
      h("strong", {}, "Time was up. "),
      told.activated && feedback === "clicks"
        ? "The list had been seen, so silence counts as no click."
        : "Nothing was learnt from that: silence says nothing.",
    ];
  if (row.kind === "conflict")
    return [h("strong", {}, "Something else came under the same id. "), CAME_TO.conflict];
  const about = feedback === "relevance" && row.values?.length === 1 ? `${told.items[0]}: ` : "";
  const first =
    row.values && row.values.length > 1 ? ` Top of the list: ${list(told.items.slice(0, 3))}.` : "";
  return [h("strong", {}, `The answer: ${about}${answerInWords(row.values, feedback)}.`), first, end];
}

export function facts(pairs) {
  return Object.entries(pairs).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
}
