// Elements, and numbers and names in words. Text is always set as text, never as HTML.

/** h("p", {class: "soft", onclick: f}, "words", other) makes an element. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** The same for an element of a picture. */
export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const byId = (id) => document.getElementById(id);

/** Set the text only where it is new, so that screen readers and selections are left alone. */
export function tell(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Announce to screen readers. */
export function say(text) {
  tell(byId("said"), text);
}

const whole = new Intl.NumberFormat("en");

export const count = (n) => whole.format(n);
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
export const percent = (share) =>
  share === null || share === undefined ? "–" : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;
export const decimal = (x) => (x === null || x === undefined ? "–" : x.toFixed(Math.abs(x) < 10 ? 3 : 1));

/** Seconds in the unit that fits. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 90) return `${seconds.toFixed(1)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** How long ago, in words; `now` is the service's clock. */
export function ago(at, now) {
  if (!at) return "never";
  const seconds = Math.max(0, (now - at) / 1000);
  return seconds < 1.5 ? "just now" : `${duration(Math.round(seconds)).replace(".0", "")} ago`;
}

export const clock = (at) => new Date(at).toLocaleTimeString("en-GB");
export const moment = (at) => new Date(at).toLocaleString("en-GB");

/** "a, b and c". */
export function list(words) {
  return words.length < 2
    ? words.join("")
    : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}

/** Feedback in words. */
export function answerInWords(values, feedback) {
  if (!values) return "no feedback yet";
  if (feedback === "clicks") {
    const places = values.flatMap((value, i) => (value > 0 ? [i + 1] : []));
    return places.length ? `click on ${list(places.map((place) => `no. ${place}`))}` : "no click";
  }
  if (values.length > 1) return `relevance ${list(values.map(String))} from the top`;
  if (values[0] === 1) return "relevant (1)";
  return values[0] === 0 ? "not relevant (0)" : `relevance ${values[0]}`;
}
