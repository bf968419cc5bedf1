/** A list to show, best first. `decision_id` is what clicks refer to. */
export interface List {
  decision_id: string;
  items: string[];
  propensities: number[] | null;
  model_seq: number;
  duplicate: boolean;
  degraded?: boolean;
}

/** What is asked of a ranker: see `POST /v1/rankers/{name}/rank`. */
export interface Request {
  decision_id?: string;
  items?: string[];
  features?: number[][];
  shared?: number[];
  exclude?: string[];
  n_positions?: number;
  pinned?: Record<number, string>;
  baseline?: string[];
  query?: string | number;
  context?: unknown;
  subject?: string;
}

/** An event of User Behavior Insights. `event_id` and `timestamp` are filled in. */
export interface UbiEvent {
  action_name: string;
  query_id: string;
  event_id?: string;
  timestamp?: string;
  [field: string]: unknown;
}

export interface Options {
  /** The ranker. */
  ranker: string;
  /** In a page, one with the role `events`: everybody can read it there. */
  key?: string;
  /** Milliseconds for which events are gathered before they are sent; 1,000. */
  delay?: number;
  /** Milliseconds after which a request is given up; 10,000. */
  timeout?: number;
  /** How often a request is sent again, after growing pauses; 4. */
  retries?: number;
  /** Is told of events that were given up, and why. */
  onLost?: (reason: string, events: UbiEvent[]) => void;
}

/** A refusal of the service. */
export class RankloopError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** Bytes in one request: a browser lets 64 KiB be on their way when a page is left. */
const MOST_BYTES = 60_000;
/** Documents in one request: the service's own limit. */
const MOST_EVENTS = 1_000;
/** Events that wait, at most. */
const MOST_WAITING = 10_000;

interface Waiting {
  event: UbiEvent;
  text: string;
  tries: number;
}

const again = (status: number): boolean => status === 408 || status === 429 || status >= 500;
const newId = (): string => {
  let id = "";
  // Also where the page is not served by https, or Node is old: an ID must be new, not secret.
  while (id.length < 32) id += Math.random().toString(36).slice(2);
  return id.slice(0, 32);
};
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Lists from a rankloop service, and reports of what users did with them, each counted once. */
export class Rankloop {
  private waiting: Waiting[] = [];
  /** What is being sent. A page that is left hands it to the browser once more: it counts once. */
  private flying: Waiting[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private sending: Promise<void> | undefined;
  private readonly leave = (event: Event): void => {
    if (event.type === "pagehide" || document.visibilityState === "hidden") this.beacon();
  };

  constructor(
    private readonly url: string,
    private readonly options: Options,
  ) {
    this.url = url.replace(/\/+$/, "");
    if (typeof document !== "undefined") {
      document.addEventListener("visibilitychange", this.leave);
      addEventListener("pagehide", this.leave);
    }
  }

  /** A list to show. Asked for again after a failure, it is the same list. */
  async rank(request: Request = {}): Promise<List> {
    const body = JSON.stringify({ ...request, decision_id: request.decision_id ?? newId() });
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (this.options.key) headers.authorization = `Bearer ${this.options.key}`;
    const path = `/v1/rankers/${encodeURIComponent(this.options.ranker)}/rank`;
    const answer = await this.post(this.url + path, { body, headers });
    return (await answer.json()) as List;
  }

  /** Report that a user saw a list, or its first `n` items. */
  shown(list: List, n: number = list.items.length): void {
    list.items.slice(0, n).forEach((item, i) => this.happened("impression", list.decision_id, item, i));
  }

  /** Report a click on an item of a list, or of the decision with this ID. */
  click(list: List | string, item: string): void {
    const place = typeof list === "string" ? -1 : list.items.indexOf(item);
    this.happened("click", typeof list === "string" ? list : list.decision_id, item, place);
  }

  /** Report any event of User Behavior Insights. */
  track(event: UbiEvent): void {
    const whole = { event_id: newId(), timestamp: new Date().toISOString(), ...event };
    this.waiting.push({ event: whole, text: JSON.stringify(whole), tries: 0 });
    if (this.waiting.length > MOST_WAITING) this.lose("too many wait", this.waiting.splice(0, 1));
    this.timer ??= setTimeout(() => void this.flush(), this.options.delay ?? 1_000);
  }

  /** Send what waits, until it is sent or given up. */
  flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    return (this.sending ??= this.send().finally(() => (this.sending = undefined)));
  }

  /** Send what waits, and listen no more. */
  async close(): Promise<void> {
    if (typeof document !== "undefined") {
      document.removeEventListener("visibilitychange", this.leave);
      removeEventListener("pagehide", this.leave);
    }
    await this.flush();
  }

  private happened(action_name: string, query_id: string, item: string, place: number): void {
    const position = place < 0 ? {} : { ordinal: place };
    this.track({ action_name, query_id, event_attributes: { object: { object_id: item }, position } });
  }

  private async send(): Promise<void> {
    while (this.waiting.length) {
      const part = (this.flying = this.part());
      try {
        const answer = await this.post(this.address(), this.message(part), true);
        const { items } = (await answer.json()) as { items: { index: { status: number } }[] };
        const refused = part.filter((_, i) => items[i].index.status >= 400);
        const left = part.filter((one, i) => again(items[i].index.status) && one.tries++ < this.retries);
        const lost = refused.filter((one) => !left.includes(one));
        if (lost.length) this.lose("refused", lost);
        if (left.length) {
          this.waiting.unshift(...left);
          await pause(1_000);
        }
      } catch (error) {
        this.lose(String(error), part);
      }
      this.flying = [];
    }
  }

  /** When the page is left: what waits goes to the browser, which sends it by itself. */
  private beacon(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.waiting.unshift(...this.flying);
    this.flying = [];
    while (this.waiting.length) {
      const part = this.part();
      const { body } = this.message(part);
      const blob = new Blob([body], { type: "text/plain" });
      if (navigator.sendBeacon?.(this.address(), blob)) continue;
      // No room: the page may still be there long enough for this, or come back.
      this.waiting.unshift(...part);
      void this.flush();
      return;
    }
  }

  /** The first events, as many as fit into a request. */
  private part(): Waiting[] {
    let bytes = 2;
    let n = 0;
    for (const { text } of this.waiting) {
      bytes += new Blob([text]).size + 1;
      if (n && (bytes > MOST_BYTES || n >= MOST_EVENTS)) break;
      n++;
    }
    return this.waiting.splice(0, n);
  }

  private address(): string {
    const { ranker, key } = this.options;
    const secret = key ? `&key=${encodeURIComponent(key)}` : "";
    return `${this.url}/v1/ubi/events?ranker=${encodeURIComponent(ranker)}${secret}`;
  }

  /** As text/plain, for which browsers need not ask first. */
  private message(part: Waiting[]): { body: string; headers: Record<string, string> } {
    return { body: `[${part.map(({ text }) => text).join()}]`, headers: { "content-type": "text/plain" } };
  }

  private lose(reason: string, part: Waiting[]): void {
    this.options.onLost?.(
      reason,
      part.map(({ event }) => event),
    );
  }

  private get retries(): number {
    return this.options.retries ?? 4;
  }

  /** Send until there is an answer that another attempt would not change. */
  private async post(
    url: string,
    message: { body: string; headers: Record<string, string> },
    keepalive = false,
  ): Promise<Response> {
    for (let attempt = 0; ; attempt++) {
      const last = attempt >= this.retries;
      let wait = 250 * 2 ** attempt * (1 + Math.random());
      try {
        const signal = AbortSignal.timeout(this.options.timeout ?? 10_000);
        const answer = await fetch(url, { method: "POST", keepalive, signal, ...message });
        if (answer.ok) return answer;
        if (last || !again(answer.status)) {
          const told = await answer.json().catch(() => ({}));
          throw new RankloopError(answer.status, told.error?.code ?? "", told.error?.message ?? answer.statusText);
        }
        wait = Math.max(wait, 1_000 * Number(answer.headers.get("retry-after") ?? 0));
      } catch (error) {
        if (last || error instanceof RankloopError) throw error;
      }
      await pause(wait);
    }
  }
}
