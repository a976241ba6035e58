// What several pages show in the same way.

import { page } from "/assets/api.js";
import { h } from "/assets/dom.js";
import { icon } from "/assets/icons.js";
import { command, cut, number, span, tail } from "/assets/text.js";
import { elapsed, since } from "/assets/time.js";
import { ENDED, RUNNING, reason, stateOf } from "/assets/words.js";

const TITLE = 300;

export function state(job) {
  const [text, shape, tone] = stateOf(job);
  return h("span", { class: `state ${tone}` }, icon(shape, 14), h("span", null, text));
}

/** What a job is called: its name, else its command. */
export function title(job) {
  const text = job.name ?? command(job.argv);
  return h("bdi", { class: job.name ? "name" : "name mono", title: cut(text, TITLE) }, cut(text, TITLE));
}

export function jobLink(id) {
  return h("a", { href: page("jobs", id), class: "mono id", title: id }, tail(id));
}

export function repositoryLink(name) {
  return h("a", { href: page("repositories", name) }, h("bdi", null, name));
}

/** One job in a list: a link over the whole row. */
export function jobRow(job) {
  const [, shape, tone] = stateOf(job);
  return h(
    "li",
    { class: "row" },
    h("span", { class: `dot ${tone}` }, icon(shape, 14)),
    h(
      "div",
      { class: "row-main" },
      h("a", { class: "row-link", href: page("jobs", job.id), data: { row: "" } }, title(job)),
      h("div", { class: "row-sub" }, under(job)),
    ),
    h("div", { class: "row-meta" }, h("bdi", null, job.repo), h("span", { class: "mono" }, tail(job.id))),
    h("div", { class: "row-time" }, timeOf(job)),
  );
}

function under(job) {
  const [text] = stateOf(job);
  if (RUNNING.includes(job.state)) {
    const attempt = job.attempt > 1 ? `, attempt ${job.attempt}` : "";
    return `${text}${attempt} · ${job.kind}${job.provider ? ` · ${job.provider}` : ""}`;
  }
  if (!ENDED.includes(job.state)) return cut(reason(job), TITLE);
  const lasted = job.duration === null ? "" : ` after ${span(job.duration)}`;
  return cut(job.error ? `${text}: ${job.error.message}` : `${text}${lasted} · ${job.kind}`, TITLE);
}

function timeOf(job) {
  if (RUNNING.includes(job.state)) return elapsed(job.started_at ?? job.queued_at);
  if (ENDED.includes(job.state)) return since(job.finished_at);
  return elapsed(job.waiting?.since ?? job.queued_at);
}

/** The list itself; `label` is for those who do not see it. */
export function rows(label) {
  return h("ul", { class: "rows", "aria-label": label });
}

const MOST_PIPS = 12;

/** How much is used of how much, as a shape and in words. */
export function meter(label, used, limit, { note = null, tone = "", unit = number } = {}) {
  const words = `${unit(used)} of ${unit(limit)}`;
  const box = {
    class: "meter-shape",
    role: "meter",
    "aria-label": label,
    "aria-valuemin": 0,
    "aria-valuemax": limit,
    "aria-valuenow": Math.min(used, limit),
    "aria-valuetext": words,
  };
  return h(
    "div",
    { class: `meter ${tone}` },
    h("div", { class: "meter-head" }, h("bdi", { class: "meter-name" }, label), h("span", { class: "meter-count" }, unit === number ? [h("b", null, number(used)), ` / ${number(limit)}`] : words)),
    h("div", box, limit <= MOST_PIPS && unit === number ? pips(used, limit) : bar(used, limit)),
    note && h("div", { class: "meter-note" }, note),
  );
}

function pips(used, limit) {
  return Array.from({ length: limit }, (_, place) => h("span", { class: place < used ? "pip on" : "pip" }));
}

export function bar(used, limit) {
  const full = h("span", { class: "bar-full" });
  full.style.width = `${limit > 0 ? Math.min(100, (100 * used) / limit) : 0}%`;
  return h("span", { class: "bar-shape" }, full);
}

export function section(text, id, ...children) {
  return h("section", { class: "block", "aria-labelledby": id }, h("h2", { id }, text), children);
}

/** What is shown where there is nothing: what it means, and the command that changes it. */
export function empty(text, ...commands) {
  return h("div", { class: "empty" }, h("p", null, text), commands.map((each) => h("pre", { class: "command" }, each)));
}

export function facts(pairs) {
  return h(
    "dl",
    { class: "facts" },
    pairs.filter(([, value]) => shown(value)).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
  );
}

const shown = (value) => ![null, undefined, false, ""].includes(value) && !(Array.isArray(value) && value.length === 0);

export function button(text, pressed, { tone = "", icon: shape = null, title: hint = null } = {}) {
  return h("button", { type: "button", class: `button ${tone}`, title: hint, on: { click: pressed } }, shape && icon(shape, 14), text);
}
