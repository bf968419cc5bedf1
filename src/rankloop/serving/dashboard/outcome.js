// What came of a call that somebody made on the page, in words beside the button.
import { count, tell } from "./format.js";

/** A function that makes a call, and tells in `done` or `failed` what came of it. */
export function runner(done, failed) {
  return async function run(work, words) {
    tell(done, "");
    tell(failed, "");
    try {
      const told = await work();
      const row = told?.seq ? ` (row ${count(told.seq)})` : "";
      tell(done, told?.status === "conflict" ? `Refused${row}: it no longer fits.` : `${words}${row}.`);
    } catch (error) {
      tell(failed, error.message);
    }
  };
}
