// What an operator does to one ranker: freeze, snapshot, roll back, reset, promote, guard rails, change items, export.
import { ask, download, newId, path } from "./api.js";
import { comparisonView } from "./comparison.js";
import { count, h, moment, tell } from "./format.js";
import { runner } from "./outcome.js";
import { trialView } from "./trial.js";

const SURE = 5000; // milliseconds in which a second press confirms
const ROLES = ["reader", "writer", "admin"];
const lines = (field) =>
  field.value
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line);

/** For one ranker, in its `parts` of the page. */
export function operator(name, parts) {
  const { may, freeze, snapshot, reset, rollback, change, done, failed, export: exported, parquet } = parts;
  const to = rollback.querySelector("select");
  const run = runner(done, failed);
  const beside = trialView(name, parts);
  const compared = comparisonView(name, parts);
  const changing = [
    freeze,
    snapshot,
    reset,
    rollback.querySelector("button"),
    change.querySelector("button"),
    ...beside.buttons,
    ...compared.buttons,
  ];
  let ranker = null;
  let role = null;
  let listed = -1; // the newest snapshot when they were listed

  ask("/v1/access").then(
    (told) => {
      role = told.role;
      draw();
    },
    () => tell(may, "What this key permits is not known."),
  );

  function draw() {
    if (!ranker || !role) return;
    const mayChange = ROLES.indexOf(role) >= 2;
    for (const button of changing) button.disabled = !mayChange;
    tell(may, mayChange ? "Each of these is a row of the log." : `These need an admin's key; this one is a ${role}'s.`);
    tell(freeze, ranker.frozen ? "Resume learning" : "Freeze learning");
    change.hidden = !ranker.current.length;
    if (listed !== ranker.snapshot_seq) listSnapshots();
  }

  async function listSnapshots() {
    listed = ranker.snapshot_seq;
    const { snapshots } = await ask(path(name, "snapshots"));
    to.replaceChildren(
      ...snapshots
        .reverse()
        .map((one) => h("option", { value: one.seq }, `row ${count(one.seq)}, ${moment(one.at)}`)),
    );
    rollback.hidden = !snapshots.length;
  }

  /** Run it when the button is pressed a second time. */
  function twice(button, work) {
    const words = button.textContent;
    let timer = null;
    const calm = () => {
      button.classList.remove("sure");
      tell(button, words);
    };
    return () => {
      clearTimeout(timer);
      if (button.classList.contains("sure")) {
        calm();
        work();
        return;
      }
      button.classList.add("sure");
      tell(button, `${words}: press again to confirm`);
      timer = setTimeout(calm, SURE);
    };
  }

  freeze.onclick = () => {
    const frozen = !ranker.frozen;
    run(() => ask(path(name, "freeze"), { frozen, event_id: newId() }), frozen ? "Frozen" : "Learning again");
  };
  snapshot.onclick = () => run(() => ask(path(name, "snapshots"), {}), "Taken");
  reset.onclick = twice(reset, () =>
    run(() => ask(path(name, "reset"), { event_id: newId() }), "What was learnt is forgotten; the log stays"),
  );
  const back = twice(rollback.querySelector("button"), () =>
    run(() => ask(path(name, "rollback"), { to_seq: Number(to.value), event_id: newId() }), "Rolled back"),
  );
  rollback.onsubmit = (event) => {
    event.preventDefault();
    back();
  };
  change.onsubmit = (event) => {
    event.preventDefault();
    const [add, retire] = [...change.querySelectorAll("textarea")].map(lines);
    if (!add.length && !retire.length) return tell(failed, "Name an item to add or to retire.");
    return run(async () => {
      const told = await ask(path(name, "items"), { add, retire, event_id: newId() });
      change.reset();
      return told;
    }, "The items are changed");
  };
  exported.onclick = () => run(() => download(path(name, "export"), `${name}.csv`), "Exported");
  parquet.onclick = () =>
    run(() => download(`${path(name, "export")}?format=parquet`, `${name}.parquet`), "Exported");

  return {
    update(fresh) {
      ranker = fresh;
      beside.update(ranker);
    compared.update(ranker);
      draw();
    },
  };
}
