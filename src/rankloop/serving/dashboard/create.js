// The form that creates a ranker.
import { ask } from "./api.js";
import { byId, say, tell } from "./format.js";

/** What `rankloop advise` takes for items without features, by what is observed; of clicks by the users, too. */
const ADVICE = { top: "TopFTRL", labels: "FTPL", clicks: { stay: "PBMTS", change: "ClickMix", unknown: "ClickMix" } };

function advised(items) {
  const feedback = byId("new-feedback").value;
  const positions = Math.max(1, Math.min(Number(byId("new-positions").value) || 1, items.length || Infinity));
  if (feedback !== "clicks") return { algorithm: ADVICE[feedback], parameters: {} };
  return { algorithm: ADVICE.clicks[byId("new-users").value], parameters: { n_positions: positions } };
}

/** `made(name)` is called when there is a new one. */
export function creator(made) {
  const card = byId("create");
  const form = card.querySelector("form");
  const advise = () => (byId("new-advice").textContent = advised([]).algorithm);
  form.onchange = advise;
  form.onreset = () => setTimeout(advise);
  advise();
  form.onsubmit = async (event) => {
    event.preventDefault();
    tell(byId("new-wrong"), "");
    try {
      const items = byId("new-items")
        .value.split("\n")
        .map((line) => line.trim())
        .filter((line) => line);
      const name = byId("new-name").value;
      await ask("/v1/rankers", {
        name,
        items: items.length ? items : null,
        ...chosen(items),
      });
      form.reset();
      card.open = false;
      say(`${name} was created.`);
      made(name);
    } catch (error) {
      tell(byId("new-wrong"), error.message);
    }
  };
}

function chosen(items) {
  const algorithm = byId("new-algorithm").value.trim();
  return algorithm ? { algorithm, parameters: readParameters(byId("new-parameters").value) } : advised(items);
}

function readParameters(text) {
  try {
    return JSON.parse(text || "{}");
  } catch (error) {
    throw new Error(`The parameters are not JSON: ${error.message}`);
  }
}
