// The picture of a timeline.

import { h, s } from "/assets/dom.js";
import { cut } from "/assets/text.js";
import { STATES } from "/assets/words.js";

const ROW = 18;
const BAR = 14;
const HEAD = 26;
const AXIS = 24;
const DEPTH = 20;
/** Pixels of a bar at least, of a letter, and between two marks of the axis. */
const LEAST = 2;
const LETTER = 7;
const APART = 96;
/** A picture that has nothing in this part of it begins later. */
const LATE = 0.3;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800];

const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const hours = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

export class Chart {
  constructor({ open, pick, signal }) {
    this.open = open;
    this.pick = pick;
    this.element = h("div", { class: "chart-in" });
    this.width = 0;
    const looks = new ResizeObserver(([seen]) => {
      const width = Math.floor(seen.contentRect.width);
      if (width === this.width || width === 0) return;
      this.width = width;
      if (this.told) this.draw();
    });
    looks.observe(this.element);
    signal.addEventListener("abort", () => looks.disconnect());
  }

  show(told, by) {
    this.told = told;
    this.by = by;
    this.width ||= Math.floor(this.element.clientWidth);
    this.draw();
  }

  draw() {
    this.look();
    const groups = this.by === "repo" ? byRepository(this.told) : byToken(this.told);
    const height = AXIS + groups.reduce((sum, group) => sum + heightOf(group), 0) + 4;
    const kept = document.activeElement?.dataset?.run;
    const parts = [hatches(), this.bands(height), this.axis(height)];
    let top = AXIS;
    for (const group of groups) {
      parts.push(this.group(group, top));
      top += heightOf(group);
    }
    const size = { class: "chart-svg", width: this.width, height, role: "group", "aria-label": "What ran when" };
    this.element.replaceChildren(s("svg", size, parts));
    if (kept) this.element.querySelector(`[data-run="${CSS.escape(kept)}"]`)?.focus();
  }

  x(seconds) {
    const { from, until } = this;
    return (Math.max(0, Math.min(until, seconds) - from) / (until - from)) * this.width;
  }

  /** Where the picture begins: where there is something, if that is only at its end. */
  look() {
    const { runs, bands, seconds } = this.told;
    const begins = [...runs.map((run) => (run.began ?? 0) - (run.waited ?? 0)), ...bands.map((band) => band.began)];
    const first = Math.max(0, Math.min(seconds, ...begins));
    this.until = seconds;
    this.from = first > seconds * LATE ? Math.max(0, first - (seconds - first) * 0.04) : 0;
  }

  axis(height) {
    const { from, until } = this;
    const { epoch } = this.told;
    const step = STEPS.find((each) => (each / (until - from)) * this.width >= APART) ?? STEPS.at(-1);
    const zone = new Date(epoch * 1000).getTimezoneOffset() * 60;
    const marks = [];
    for (let at = Math.ceil((epoch + from - zone) / step) * step + zone; at <= epoch + until; at += step) {
      const x = this.x(at - epoch);
      const moment = new Date(at * 1000);
      const text = (step < 60 ? clock : step < 86400 ? hours : days).format(moment);
      marks.push(s("line", { class: "mark", x1: x, x2: x, y1: AXIS - 6, y2: height }));
      if (x + text.length * LETTER < this.width) marks.push(s("text", { class: "axis", x: x + 4, y: 14 }, text));
    }
    return marks;
  }

  bands(height) {
    return this.told.bands
      .filter((band) => !band.repo)
      .map((band) => {
        const x = this.x(band.began);
        const width = Math.max(1, this.x(band.ended ?? this.told.seconds) - x);
        return s("rect", { class: `band ${band.kind}`, x, y: AXIS - 6, width, height: height - AXIS + 6 }, s("title", null, `${band.kind}${band.reason ? `: ${band.reason}` : ""}`));
      });
  }

  group(group, top) {
    const parts = [s("line", { class: "group-line", x1: 0, x2: this.width, y1: top + 1.5, y2: top + 1.5 }), s("text", { class: "group", x: 2, y: top + 18 }, cut(group.name, 60))];
    if (group.note) parts.push(s("text", { class: "axis", x: 14 + Math.min(60, group.name.length) * 8, y: top + 18 }, group.note));
    if (group.depth) parts.push(this.depth(group.depth, top + HEAD + group.rows * ROW));
    // The waits first: what ran meanwhile on the same row is drawn over them.
    for (const [run, row] of group.runs) parts.push(this.wait(run, top + HEAD + row * ROW));
    for (const [run, row] of group.runs) parts.push(this.run(run, top + HEAD + row * ROW));
    return parts;
  }

  wait({ began, waited }, top) {
    if (!waited || began === null) return null;
    const [from, to] = [this.x(began - waited), this.x(began)];
    const y = top + BAR / 2;
    return to - from > LEAST ? s("line", { class: "waited", x1: from, x2: to, y1: y, y2: y }) : null;
  }

  run(run, top) {
    const { seconds } = this.told;
    const began = run.began ?? 0;
    const x = this.x(began);
    const width = Math.max(LEAST, this.x(run.ended ?? seconds) - x);
    const tone = toneOf(run);
    const name = run.name ?? run.kind ?? run.job.slice(-6);
    const parts = [s("rect", { class: `run-bar ${tone}`, x, y: top, width, height: BAR, rx: Math.min(3, width / 2) })];
    for (const [from, to] of run.suspended) {
      parts.push(s("rect", { class: "suspended", x: this.x(from), y: top + 4, width: Math.max(1, this.x(to ?? seconds) - this.x(from)), height: BAR - 8 }));
    }
    const letters = Math.floor((width - 10) / LETTER);
    if (letters > 3) {
      const text = name.length > letters ? `${name.slice(0, letters - 1)}…` : name;
      parts.push(s("text", { class: `run-text ${tone}`, x: x + 5, y: top + 11 }, text));
    }
    const pick = () => this.pick(run);
    const open = () => this.open(run);
    const word = run.ended === null ? "running" : (STATES[run.outcome]?.[0] ?? "unknown").toLowerCase();
    return s(
      "g",
      {
        class: "run-group",
        role: "link",
        tabindex: -1,
        "data-row": "",
        "data-run": `${run.job}/${run.attempt}`,
        "aria-label": `${cut(name, 80)}, ${run.repo}, ${word}`,
        on: { pointerenter: pick, focus: pick, click: open, keydown: (event) => event.key === "Enter" && open() },
      },
      parts,
    );
  }

  /** How many jobs waited, as an area. */
  depth({ jobs, most }, top) {
    const x = (place) => this.x((place / jobs.length) * this.told.seconds);
    const y = (count) => top + DEPTH - 3 - (count / most) * (DEPTH - 5);
    const points = jobs.flatMap((count, place) => [`${x(place)},${y(count)}`, `${x(place + 1)},${y(count)}`]);
    return s("polygon", { class: "depth", points: [`0,${y(0)}`, ...points, `${this.width},${y(0)}`].join(" ") });
  }
}

function heightOf(group) {
  return HEAD + group.rows * ROW + (group.depth ? DEPTH : 0) + 6;
}

function byRepository({ repositories, runs, depths }) {
  return repositories.map((name) => {
    const mine = runs.filter((run) => run.repo === name).map((run) => [run, run.lane]);
    const told = depths.filter((each) => each.repo === name);
    const jobs = told.length ? told[0].jobs.map((_, place) => told.reduce((sum, each) => sum + each.jobs[place], 0)) : [];
    const most = Math.max(0, ...jobs);
    const depth = most > 0 ? { jobs, most } : null;
    const note = depth ? `up to ${Math.ceil(most)} waited` : "";
    return { name, note, depth, runs: mine, rows: rowsOf(mine) };
  });
}

function byToken({ runs, limits }) {
  const names = new Set([...Object.keys(limits), ...runs.flatMap((run) => run.tokens)]);
  const groups = [...names].map((name) => {
    const mine = runs.filter((run) => name in run.slots).map((run) => [run, run.slots[name]]);
    return { name, note: name in limits ? `limit ${limits[name]}` : "", depth: null, runs: mine, rows: rowsOf(mine) };
  });
  return groups.filter((group) => group.runs.length > 0);
}

function rowsOf(runs) {
  return runs.reduce((most, [, row]) => Math.max(most, row + 1), 0);
}

function toneOf(run) {
  if (run.ended === null) return "run";
  const tone = STATES[run.outcome]?.[2] ?? "calm";
  return tone === "wait" ? "calm" : tone;
}

/** Failures are told from the rest by stripes, too. */
function hatches() {
  const lines = s("path", { class: "stripe", d: "M-2 8L8 -2M2 12L12 2" });
  const pattern = s("pattern", { id: "stripes", width: 10, height: 10, patternUnits: "userSpaceOnUse" }, s("rect", { class: "stripe-ground", width: 10, height: 10 }), lines);
  return s("defs", null, pattern);
}
