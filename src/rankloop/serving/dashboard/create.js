// The form that creates a ranker.
import { ask } from "./api.js";
import { byId, say, tell } from "./format.js";

/** `made(name)` is called when there is a new one. */
export function creator(made) {
  const card = byId("create");
  const form = card.querySelector("form");
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
        algorithm: byId("new-algorithm").value,
        items: items.length ? items : null,
        parameters: readParameters(byId("new-parameters").value),
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

function readParameters(text) {
  try {
    return JSON.parse(text || "{}");
  } catch (error) {
    throw new Error(`The parameters are not JSON: ${error.message}`);
  }
}
