// The history of the service, followed while the page is seen. A hidden page holds no
// connection open; it goes on where it was when somebody looks again.

import { ask, route } from "/assets/api.js";
import { messages } from "/assets/stream.js";

const PATIENCE = [500, 1000, 2000, 5000, 10000];

export class Live {
  /** `happened(events)` is called as they come, with null where some may be missing;
   * `told(state)` is called when the link changes:
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
      }
      if (stopping.signal.aborted) return;
      this.tell("waiting");
      const patience = PATIENCE[Math.min(this.failures, PATIENCE.length - 1)];
      this.failures += 1;
      await pause(patience, stopping.signal);
    }
  }

  async listen(signal) {
    const headers = { accept: "text/event-stream" };
    if (this.after !== null) headers["last-event-id"] = this.after;
    const answer = await ask("GET", route(["events"]), { headers, signal });
    this.failures = 0;
    this.tell("live");
    // What happened before we listened is told by nobody.
    if (this.after === null) this.happened(null);
    for await (const told of messages(answer)) {
      for (const { id, event } of told) {
        if (id !== null) this.after = id;
        if (event === "gap") this.happened(null);
      }
      const events = told.filter(({ event, data }) => event === "message" && data);
      if (events.length) this.happened(events.map(({ data }) => JSON.parse(data)));
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
