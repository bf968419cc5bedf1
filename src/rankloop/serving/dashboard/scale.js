// Scales, ticks and paths of a chart: numbers in, numbers and path strings out.

export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** From the numbers `low` to `high` to the places `from` to `to`, in proportion; `invert` goes back. */
export function linear([low, high], [from, to]) {
  const place = (value) => from + ((value - low) / (high - low)) * (to - from);
  place.invert = (at) => low + ((at - from) / (to - from)) * (high - low);
  return place;
}

/** The smallest step of the form 1, 2 or 5 times a power of ten that makes at most `most` steps. */
export function stepFor([low, high], most) {
  const least = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((factor) => factor * power >= least * (1 - 1e-9)) ?? 10);
}

/** All multiples of `step` from `low` to `high`. */
export function ticks([low, high], step) {
  const slack = 1e-9;
  const first = Math.ceil(low / step - slack);
  const last = Math.floor(high / step + slack);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => exact((first + i) * step, step));
}

/** The range widened to whole multiples of `step`. */
export function widened([low, high], step) {
  return [exact(Math.floor(low / step) * step, step), exact(Math.ceil(high / step) * step, step)];
}

/** How many decimals tell the multiples of `step` apart. */
export const decimalsOf = (step) => Math.max(0, -Math.floor(Math.log10(step) + 1e-9));

// 3 * 0.1 is not 0.3: rounded to the decimals of the step it is.
const exact = (value, step) => Number(value.toFixed(decimalsOf(step)));

/** The least and the greatest of `values`, apart even where they are equal or where there are none. */
export function extent(values) {
  if (!values.length) return [0, 1];
  const low = values.reduce((one, other) => Math.min(one, other));
  const high = values.reduce((one, other) => Math.max(one, other));
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

/** A path through the points [x, y]; a point with a y that is no number interrupts it. */
export function linePath(points) {
  return runs(points, ([, y]) => isNumber(y))
    .map((run) => `M${run.map(([x, y]) => pair(x, y)).join("L")}`)
    .join("");
}

/** An area between the points [x, low, high]. */
export function areaPath(points) {
  return runs(points, ([, low, high]) => isNumber(low) && isNumber(high))
    .map((run) => {
      const there = run.map(([x, , high]) => pair(x, high));
      const back = [...run].reverse().map(([x, low]) => pair(x, low));
      return `M${[...there, ...back].join("L")}Z`;
    })
    .join("");
}

const pair = (x, y) => `${x.toFixed(2)},${y.toFixed(2)}`;

function runs(points, holds) {
  const found = [[]];
  for (const point of points) {
    if (holds(point)) found[found.length - 1].push(point);
    else if (found[found.length - 1].length) found.push([]);
  }
  return found.filter((run) => run.length);
}

/** The index of the value in `sorted` that is nearest to `wanted`. */
export function nearest(sorted, wanted) {
  let best = 0;
  for (let i = 1; i < sorted.length; i += 1)
    if (Math.abs(sorted[i] - wanted) < Math.abs(sorted[best] - wanted)) best = i;
  return best;
}

const SECOND = 1000;
const DAY = 86400 * SECOND;
const TIME_STEPS = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 172800, 604800, 2592000].map(
  (seconds) => seconds * SECOND,
);

/** The smallest usual step of time, in milliseconds, that makes at most `most` steps. */
export function timeStep([low, high], most) {
  return TIME_STEPS.find((step) => (high - low) / step <= most) ?? Math.ceil((high - low) / most / DAY) * DAY;
}

/** All round times from `low` to `high`, in the zone of the reader. */
export function timeTicks([low, high], step) {
  const zone = new Date(low).getTimezoneOffset() * 60 * SECOND;
  const first = Math.ceil((low - zone) / step);
  const last = Math.floor((high - zone) / step);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step + zone);
}

/** A time as an axis with this step writes it. */
export function timeLabel(at, step) {
  const date = new Date(at);
  if (step >= DAY) return date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  const seconds = step < 60 * SECOND ? { second: "2-digit" } : {};
  return date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...seconds });
}

/** For each of `wanted`, the index of the last of `sorted` that is not beyond it; -1 where there is none. */
export function lastNotBeyond(sorted, wanted) {
  let i = -1;
  return wanted.map((x) => {
    while (i + 1 < sorted.length && sorted[i + 1] <= x) i += 1;
    return i;
  });
}
