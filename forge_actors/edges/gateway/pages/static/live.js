// The history of the service, followed while the page is seen. A hidden page holds no
// connection open; it goes on where it was when somebody looks again.

import { ask, get, lines, route } from "/assets/api.js";

const PATIENCE = [500, 1000, 2000, 5000, 10000];

export class Live {
  /** `happened(events)` is called as they come, `told(state)` when the link changes:
   * `live`, `waiting` for the service, `asleep`, or `out` without a login. */
  constructor(happened, told) {
    this.happened = happened;
    this.told = told;
    this.after = null;
    this.failures = 0;
    this.stopping = null;
    this.state = "";
    document.addEventListener("visibilitychange", () => this.look());
    addEventListener("online", () => this.look());
    // A page that the browser keeps for "back" must not hold a connection.
    addEventListener("pagehide", () => this.stop());
    addEventListener("pageshow", () => this.look());
  }

  look() {
    if (document.hidden) {
      this.stop();
      this.tell("asleep");
    } else if (this.stopping === null && this.state !== "out") {
      this.follow();
    }
  }

  stop() {
    this.stopping?.abort();
    this.stopping = null;
  }

  tell(state) {
    if (state === this.state) return;
    this.state = state;
    this.told(state);
  }

  async follow() {
    const stopping = new AbortController();
    this.stopping = stopping;
    while (!stopping.signal.aborted) {
      try {
        await this.listen(stopping.signal);
      } catch (error) {
        if (stopping.signal.aborted) return;
        if (error.status === 401) {
          this.stopping = null;
          this.tell("out");
          return;
        }
        // The history was cut off behind us, or is another one: begin anew.
        if (error.status === 400 || error.status === 410) this.after = null;
      }
      if (stopping.signal.aborted) return;
      this.tell("waiting");
      const patience = PATIENCE[Math.min(this.failures, PATIENCE.length - 1)];
      this.failures += 1;
      await pause(patience, stopping.signal);
    }
  }

  async listen(signal) {
    const fresh = this.after === null;
    const { store } = await get(["status"], {}, signal);
    if (fresh || store.last_event < this.after) this.after = store.last_event;
    const address = route(["events"], { after: this.after, follow: 1 });
    const answer = await ask("GET", address, { signal });
    this.failures = 0;
    this.tell("live");
    if (!fresh) this.happened(null);
    for await (const events of lines(answer)) {
      this.after = events[events.length - 1].seq;
      this.happened(events);
    }
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
