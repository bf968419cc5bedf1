// The public API: calls with a key where one is needed, and the stream of server-sent events.

const KEY = "rankloop-key";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Kept for this tab only. */
export function useKey(key) {
  sessionStorage.setItem(KEY, key);
}

function headers(more = {}) {
  const key = sessionStorage.getItem(KEY);
  return key ? { ...more, Authorization: `Bearer ${key}` } : more;
}

/** GET where there is no body, POST where there is one. Throws `Refused`. */
export async function ask(path, body) {
  const posted = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(path, {
    ...posted,
    headers: headers(body === undefined ? {} : { "Content-Type": "application/json" }),
  });
  const told = await answer.json();
  if (!answer.ok) throw new Refused(answer.status, told.error?.message ?? answer.statusText);
  return told;
}

/** Save what the service answers as a file. */
export async function download(from, name) {
  const answer = await fetch(from, { headers: headers() });
  if (!answer.ok) throw new Refused(answer.status, (await answer.json()).error?.message ?? answer.statusText);
  const url = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** One call as it is, for the page about the API: the status and the text of the answer. */
export async function call(method, where, body) {
  const more = body === undefined ? {} : { body };
  const answer = await fetch(where, {
    method,
    ...more,
    headers: headers(body === undefined ? {} : { "Content-Type": "application/json" }),
  });
  return { status: answer.status, text: await answer.text() };
}

export const path = (ranker, ...more) =>
  ["/v1/rankers", ranker, ...more].map((part, i) => (i ? encodeURIComponent(part) : part)).join("/");

/** An id of our own, so that asking again can never count twice. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Read the stream for ever; EventSource cannot carry a key, so it is read by hand. */
export async function listen({ onEvent, onOpen, onLost }) {
  for (let wait = 500; ; wait = Math.min(2 * wait, 8000)) {
    try {
      const answer = await fetch("/v1/stream", { headers: headers({ Accept: "text/event-stream" }) });
      if (!answer.ok)
        throw new Refused(answer.status, (await answer.json()).error?.message ?? answer.statusText);
      onOpen();
      wait = 250;
      await readEvents(answer.body, onEvent);
      onLost(null);
    } catch (error) {
      const again = onLost(error);
      if (again) {
        await again;
        wait = 250;
        continue;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

async function readEvents(body, onEvent) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let kept = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (kept + value).split("\n\n");
    kept = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s, 2)));
      if (fields.data) onEvent(fields.event ?? "message", JSON.parse(fields.data));
    }
  }
}
