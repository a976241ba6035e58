// What a job prints, as it prints it: followed, searched, and never more of it in the
// page than somebody can scroll through.

import { ask, route } from "/assets/api.js";
import { fill, h } from "/assets/dom.js";
import { frames } from "/assets/frames.js";
import { Search } from "/assets/search.js";
import { cut, number } from "/assets/text.js";
import { ENDED } from "/assets/words.js";

/** Lines that are asked for at first, that are in the page at most, and in one piece. */
const TAIL = 1000;
const MOST = 3000;
const PIECE = 250;
/** Characters of a line that are shown, and that are kept of one without an end. */
const LINE = 2000;
const UNFINISHED = 1 << 20;
/** Near enough to the end to go on following. */
const NEAR = 40;

export class Log {
  constructor(signal) {
    this.signal = signal;
    this.key_ = "";
    this.stream = "both";
    this.attempt = null;
    this.following = true;
    this.reading = null;
    this.body = h("div", { class: "log", tabindex: 0, role: "region", "aria-label": "Output" });
    this.body.addEventListener("scroll", () => this.scrolled());
    this.status = h("span", { class: "soft", role: "status" });
    this.bar = h("div", { class: "log-bar" });
    this.search = new Search(this.body, () => this.setFollowing(false));
    this.element = h("section", { class: "block", "aria-labelledby": "output" }, h("h2", { id: "output" }, "Output"), this.bar, this.body, this.status);
    document.addEventListener("visibilitychange", () => this.seen(), { signal });
    signal.addEventListener("abort", () => {
      this.stop();
      this.search.clear();
    });
  }

  /** Show the output of a job; called again whenever something happened to it. */
  show(view) {
    this.view = view;
    const begun = view.attempt > 0;
    const ended = ENDED.includes(view.state);
    const key = JSON.stringify([view.id, view.attempt > 1, begun, this.stream, this.attempt]);
    if (key !== this.key_) {
      this.key_ = key;
      this.controls(begun);
      this.begin(begun, ended);
    }
    this.follow.hidden = ended;
  }

  begin(begun, ended) {
    if (!begun) {
      fill(this.body, h("p", { class: "log-note" }, ended ? "It never began." : "It has not begun. What it prints appears here."));
      return;
    }
    this.read(!ended);
  }

  controls(begun) {
    const { view } = this;
    const streams = h("select", { id: "log-stream", on: { change: () => this.choose({ stream: streams.value }) } }, [["both", "All output"], ["stdout", "stdout"], ["stderr", "stderr"]].map(([value, text]) => h("option", { value, selected: value === this.stream }, text)));
    const attempts = view.attempt > 1 && h("select", { id: "log-attempt", on: { change: () => this.choose({ attempt: Number(attempts.value) || null }) } }, h("option", { value: "" }, "Last attempt"), Array.from({ length: view.attempt - 1 }, (_, place) => h("option", { value: place + 1, selected: this.attempt === place + 1 }, `Attempt ${place + 1}`)));
    this.follow = h("button", { type: "button", class: "button", "aria-pressed": "true", title: "f", on: { click: () => this.setFollowing(!this.following) } }, "Follow");
    const wrap = h("button", { type: "button", class: "button", "aria-pressed": String(this.body.classList.contains("wrap")), on: { click: () => wrap.setAttribute("aria-pressed", String(this.body.classList.toggle("wrap"))) } }, "Wrap");
    const name = this.stream === "both" ? "stdout" : this.stream;
    const whole = h("a", { class: "button", href: route(["jobs", view.id, "logs", name], { attempt: this.attempt }), download: `${view.id}-${name}.log` }, `Save ${name}`);
    this.bar.hidden = !begun;
    fill(this.bar, h("label", { class: "hidden", for: "log-stream" }, "Stream"), streams, attempts && [h("label", { class: "hidden", for: "log-attempt" }, "Attempt"), attempts], this.follow, wrap, whole, this.search.element);
  }

  choose(changed) {
    Object.assign(this, changed);
    this.show(this.view);
  }

  key(key) {
    if (key === "/" && !this.bar.hidden) this.search.focus();
    else if (key === "f" && this.follow) this.setFollowing(!this.following);
    else return false;
    return true;
  }

  // Reading

  stop() {
    this.reading?.abort();
    this.reading = null;
  }

  seen() {
    // A hidden page holds no request; looked at again, it reads what came meanwhile.
    if (document.hidden) this.stop();
    else if (this.view && this.reading === null && this.open_) this.read(true);
  }

  async read(follow) {
    this.stop();
    const reading = new AbortController();
    this.reading = reading;
    this.clear();
    this.open_ = follow;
    fill(this.status, follow ? "" : "Loading…");
    try {
      if (this.attempt === null) await this.readLast(follow, reading.signal);
      else await this.readEarlier(reading.signal);
      this.open_ = false;
    } catch (error) {
      if (reading.signal.aborted) return;
      // It is read anew when the page is loaded again, as it is once a service answers.
      this.key_ = "";
      fill(this.status, error.message || "The output broke off.");
      return;
    }
    if (!reading.signal.aborted) this.finish();
  }

  async readLast(follow, signal) {
    const address = route(["logs"], { stream: this.stream, tail: TAIL, follow: follow ? 1 : null });
    const answer = await ask("POST", address, { body: { jobs: [this.view.id] }, signal });
    for await (const { stream, text, ended } of frames(answer)) {
      if (signal.aborted || ended) return;
      if (stream) this.add(stream, text);
    }
  }

  async readEarlier(signal) {
    for (const stream of this.stream === "both" ? ["stdout", "stderr"] : [this.stream]) {
      const address = route(["jobs", this.view.id, "logs", stream], { attempt: this.attempt, tail: TAIL });
      this.add(stream, await (await ask("GET", address, { signal })).text());
    }
  }

  // Showing

  clear() {
    this.rest = {};
    this.waiting = [];
    this.count = 0;
    this.dropped = 0;
    this.body.replaceChildren();
    this.search.clear();
  }

  add(stream, text) {
    const lines = ((this.rest[stream] ?? "") + text).split("\n");
    this.rest[stream] = lines.pop().slice(0, UNFINISHED);
    for (const line of lines) this.waiting.push([stream, line.endsWith("\r") ? line.slice(0, -1) : line]);
    if (this.waiting.length > MOST) {
      this.dropped += this.waiting.length - MOST;
      this.waiting.splice(0, this.waiting.length - MOST);
    }
    this.frame ??= requestAnimationFrame(() => this.draw());
  }

  finish() {
    for (const [stream, text] of Object.entries(this.rest)) if (text) this.waiting.push([stream, text]);
    this.rest = {};
    this.draw();
    if (this.count === 0) fill(this.body, h("p", { class: "log-note" }, "It printed nothing."));
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    for (const [stream, text] of this.waiting) {
      let piece = this.body.lastElementChild;
      if (!piece || piece.childElementCount >= PIECE) {
        piece = h("div", { class: "log-piece" });
        this.body.append(piece);
      }
      piece.append(h("div", { class: stream === "stderr" ? "line err" : "line" }, cut(text, LINE) || "\u00a0"));
      this.count += 1;
    }
    this.waiting = [];
    while (this.count > MOST) {
      const oldest = this.body.firstElementChild;
      this.count -= oldest.childElementCount;
      this.dropped += oldest.childElementCount;
      oldest.remove();
    }
    const lines = `${number(this.count)} line${this.count === 1 ? "" : "s"}`;
    const cut_ = this.dropped ? `; ${number(this.dropped)} earlier ones are not shown here` : this.count >= TAIL ? `, the last ones` : "";
    fill(this.status, this.count ? lines + cut_ : "");
    if (this.following) this.body.scrollTop = this.body.scrollHeight;
    this.search.changed();
  }

  setFollowing(on) {
    this.following = on;
    this.follow?.setAttribute("aria-pressed", String(on));
    if (on) this.body.scrollTop = this.body.scrollHeight;
  }

  scrolled() {
    const left = this.body.scrollHeight - this.body.clientHeight - this.body.scrollTop;
    const near = left < NEAR;
    if (near !== this.following) {
      this.following = near;
      this.follow?.setAttribute("aria-pressed", String(near));
    }
  }
}
