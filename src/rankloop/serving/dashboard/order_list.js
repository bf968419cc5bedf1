// A list whose items glide to their new places, with arrows that count how far each has moved.
import { h } from "./format.js";

const still = window.matchMedia("(prefers-reduced-motion: reduce)");

/** `note(name)` may return words to show at the end of an item. */
export function movingOrder({ label, note = () => null, most = 30 }) {
  const element = h("ol", { class: "order", "aria-label": label });
  const more = h("p", { class: "soft small" });
  const rows = new Map();
  let first = null;
  let shown = [];

  /** Show this order; returns the names that moved. */
  function show(names) {
    if (first === null || names.length !== first.size || names.some((name) => !first.has(name))) {
      first = new Map(names.map((name, i) => [name, i]));
    }
    more.textContent = names.length > most ? `and ${names.length - most} more` : "";
    const old = shown;
    const before = new Map([...rows].map(([name, row]) => [name, row.getBoundingClientRect().top]));
    shown = names.slice(0, most);
    for (const name of rows.keys()) if (!shown.includes(name)) rows.delete(name);
    const changed = old.length ? shown.filter((name, i) => old[i] !== name) : [];
    const placed = shown.map((name) => {
      if (!rows.has(name)) rows.set(name, h("li", {}, h("span", {}, name), h("span", { class: "move" })));
      return rows.get(name);
    });
    if (changed.length || element.children.length !== placed.length) element.replaceChildren(...placed);
    shown.forEach((name, i) => decorate(rows.get(name).lastChild, name, first.get(name) - i));
    if (!still.matches) for (const name of changed) glide(rows.get(name), before.get(name));
    return changed;
  }

  function decorate(tag, name, rise) {
    const words = note(name);
    const text = words ?? (rise > 0 ? `▲ ${rise}` : rise < 0 ? `▼ ${-rise}` : "");
    const kind = words ? "move" : `move ${rise > 0 ? "up" : rise < 0 ? "down" : ""}`;
    if (tag.textContent !== text) tag.textContent = text;
    if (tag.className !== kind) tag.className = kind;
    if (!words && rise)
      tag.title = `${Math.abs(rise)} ${rise > 0 ? "higher" : "lower"} than when you opened this page`;
  }

  function glide(row, from) {
    if (from === undefined) return;
    const by = from - row.getBoundingClientRect().top;
    if (!by) return;
    row.classList.add("moved");
    const moving = row.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], {
      duration: 600,
      easing: "cubic-bezier(.3,.9,.3,1)",
    });
    moving.onfinish = () => row.classList.remove("moved");
  }

  const region = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, element, more);
  return { element: region, show, names: () => shown };
}
