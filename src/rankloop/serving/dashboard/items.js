// The table of items: what each was shown and got back, searched and sorted by the service.
import { ask, path } from "./api.js";
import { itemFeatures } from "./features.js";
import { count, decimal, h, plural, tell } from "./format.js";

const REFRESH = 5000; // milliseconds between two looks, however much happens
const MOST = 100; // rows that are shown
const HEADS = [
  ["order", "Place", "ascending"],
  ["name", "Item", "ascending"],
  ["shown", "Shown", "descending"],
  ["observed", "Feedback", "descending"],
  ["positive", "Positive", "descending"],
  ["estimate", "Mean (95% interval)", "descending"],
];

/** For one ranker, in its `parts` of the page. */
export function itemTable(name, parts) {
  const { items: body, "item-heads": heads, "item-search": search, "items-note": note, "items-card": card } = parts;
  const showFeatures = itemFeatures(name, parts["item-features"]);
  let stored = false; // whether items have features of their own
  let sort = "order";
  let clicks = false;
  let planned = null;
  let gone = false;
  search.oninput = () => plan(250);
  drawHeads();

  function drawHeads() {
    heads.replaceChildren(
      ...HEADS.map(([key, words, direction]) => {
        const label = clicks && key === "positive" ? "Clicked" : words;
        const order = () => {
          sort = key;
          drawHeads();
          plan(0);
        };
        const button = h("button", { type: "button", onclick: order }, label);
        return h("th", { scope: "col", "aria-sort": key === sort ? direction : "none" }, button);
      }),
    );
  }

  function plan(wait) {
    clearTimeout(planned);
    planned = setTimeout(refresh, wait);
  }

  async function refresh() {
    try {
      const asked = new URLSearchParams({ search: search.value, sort, limit: MOST });
      const { items, total, since } = await ask(`${path(name, "items")}?${asked}`);
      if (gone) return;
      card.hidden = total === 0;
      body.replaceChildren(...items.map(row));
      const some = items.length === MOST ? `The first ${MOST}` : plural(items.length, "item");
      const from = since ? ` Counted since row ${count(since)} of the log.` : "";
      tell(
        note,
        `${some} of ${count(total)}. The mean is of the feedback that was learnt, whatever the place in the list.${from}`,
      );
    } catch {
      // The service is away; the stream says so.
    } finally {
      planned = null;
    }
  }

  function row(one) {
    const interval = one.low === null ? "" : ` (${decimal(one.low)} to ${decimal(one.high)})`;
    const cells = [
      one.place ? count(one.place) : "–",
      stored ? h("button", { type: "button", onclick: () => showFeatures(one.item) }, one.item) : one.item,
      count(one.shown),
      count(one.observed),
      count(one.positive),
      one.estimate === null ? "–" : `${decimal(one.estimate)}${interval}`,
    ];
    return h("tr", {}, ...cells.map((cell) => h("td", {}, cell)));
  }

  return {
    update(ranker) {
      stored = ranker.stored_features > 0;
      if (clicks !== (ranker.feedback === "clicks")) {
        clicks = !clicks;
        drawHeads();
      }
      planned ??= setTimeout(refresh, body.children.length ? REFRESH : 0);
    },
    close() {
      gone = true;
      clearTimeout(planned);
    },
  };
}
