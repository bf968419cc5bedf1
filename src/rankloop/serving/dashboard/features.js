// The features of one item: those that weigh most in its score now, with their values and weights.
import { ask, path } from "./api.js";
import { count, decimal, h, say } from "./format.js";

const MOST = 12; // features that are shown

/** Shows the stored features of items of one ranker in `place`. */
export function itemFeatures(name, place) {
  return async function show(item) {
    try {
      const told = await ask(path(name, "features", item));
      const most = [...told.features].sort((a, b) => Math.abs(b.part) - Math.abs(a.part)).slice(0, MOST);
      const left = told.features.length - most.length;
      place.replaceChildren(
        h("h4", {}, `Features of ${item}`),
        h(
          "table",
          { class: "numbers" },
          h("caption", { class: "unseen" }, `Features of ${item} that weigh most in its score`),
          h("thead", {}, h("tr", {}, ...["Feature", "Value", "Weight", "In the score"].map(head))),
          h("tbody", {}, ...most.map(row)),
        ),
        h(
          "p",
          { class: "small soft" },
          `Stored in row ${count(told.since)} of the log.${left ? ` ${count(left)} more weigh less.` : ""}`,
        ),
      );
      place.hidden = false;
      say(`Features of ${item}`);
    } catch (error) {
      place.replaceChildren(h("p", { class: "wrong", role: "alert" }, error.message));
      place.hidden = false;
    }
  };
}

function head(words) {
  return h("th", { scope: "col" }, words);
}

function row(one) {
  const cells = [decimal(one.value), decimal(one.weight), decimal(one.part)];
  return h(
    "tr",
    {},
    h("td", {}, one.name ?? `feature ${one.feature}`),
    ...cells.map((cell) => h("td", {}, cell)),
  );
}
