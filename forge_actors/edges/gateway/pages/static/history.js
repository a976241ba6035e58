// What happened to a job, from its events.

import { h } from "/assets/dom.js";
import { icon } from "/assets/icons.js";
import { jobLink, section } from "/assets/parts.js";
import { cut, span } from "/assets/text.js";
import { since } from "/assets/time.js";
import { ENDED, RUNNING, STATES } from "/assets/words.js";

const OTHERS = {
  job_held: ["Held", "pause", "calm"],
  job_unheld: ["Let go on", "play", "calm"],
  job_paused: ["Paused", "pause", "calm"],
  job_resumed: ["Resumed", "play", "calm"],
  job_edited: ["Edited", "dash", "calm"],
  job_delegated: ["Submitted jobs", "branch", "calm"],
  job_applied: ["Applied", "branch", "good"],
  job_auto_isolated: ["Gets a worktree", "branch", "calm"],
  job_unisolated: ["Waits for the checkout", "branch", "calm"],
  job_redirected: ["Given to another agent", "branch", "calm"],
  job_quarantined: ["Its claims are kept", "lock", "warn"],
  job_quarantine_ended: ["Its claims are free", "lock", "calm"],
  agent_session: ["Session", "talk", "calm"],
  write_refused: ["A late writer was refused", "lock", "warn"],
  receipt_refused: ["A late receipt was refused", "lock", "warn"],
  effect_refused: ["Was kept from something", "lock", "warn"],
  provider_closed: ["Closed its provider", "lock", "warn"],
};

function kindOf(kind) {
  const state = STATES[kind.replace(/^job_/, "")];
  return state ?? OTHERS[kind] ?? [sentence(kind), "dash", "calm"];
}

function sentence(kind) {
  const text = kind.replace(/^job_/, "").replaceAll("_", " ");
  return text[0].toUpperCase() + text.slice(1);
}

/** Every step, the newest first. */
export function historyOf(events) {
  if (events.length === 0) return h("div");
  const steps = events.toReversed().map(step);
  return section("History", "history", h("ol", { class: "steps" }, steps));
}

function step({ at, kind, data }) {
  const [text, shape, tone] = kindOf(kind);
  return h("li", { class: `step ${tone}` }, icon(shape, 14), h("div", null, h("div", { class: "step-head" }, h("span", null, text), h("span", { class: "push" }, since(at))), detail(data)));
}

function detail(data) {
  const words = [];
  if (data.attempt) words.push(`attempt ${data.attempt}`);
  if (data.fence) words.push(`fence ${data.fence}`);
  if (data.pid) words.push(`process ${data.pid}`);
  if (data.tokens?.length) words.push(`takes ${data.tokens.join(", ")}`);
  if (data.delay) words.push(`again in ${span(data.delay)}`);
  if (data.reason) words.push(String(data.reason));
  if (data.error) words.push(`${data.error.code}: ${data.error.message}`);
  if (data.step) words.push(`next: its ${data.step}`);
  if (data.effects) words.push(data.effects.join(", "));
  if (data.session) words.push(`${data.how} ${data.session}`);
  if (data.branch) words.push(data.into ? `${data.branch} into ${data.into}` : data.branch);
  if (data.changed) words.push(JSON.stringify(data.changed));
  if (data.claims?.length && !data.tokens) words.push(data.claims.map((claim) => (Array.isArray(claim) ? claim.filter(Boolean).slice(0, 3).join(":") : claim)).join("  "));
  const child = data.child && [" ", jobLink(data.child)];
  if (words.length === 0 && !child) return null;
  return h("div", { class: "row-sub wrap" }, h("bdi", null, cut(words.join(" · "), 500)), child);
}

/** What became of each attempt; of a single one the history says it already. */
export function attemptsOf(events, view) {
  const attempts = [];
  for (const { at, kind, data } of events) {
    const state = kind.replace(/^job_/, "");
    if (kind === "job_dispatched") attempts.push({ number: data.attempt, from: at, state: "dispatched", until: null, error: null });
    const last = attempts.at(-1);
    if (!last || last.until) continue;
    if (kind === "job_running") last.state = "running";
    else if (state in STATES && !RUNNING.includes(state)) Object.assign(last, { until: at, state: ENDED.includes(state) ? state : "failed", error: data.error ?? null, reason: data.reason });
  }
  if (attempts.length < 2 && view.attempt < 2) return h("div");
  const entries = attempts.map((each) => {
    const [text, shape, tone] = STATES[each.state];
    const lasted = each.until ? span((Date.parse(each.until) - Date.parse(each.from)) / 1000) : "";
    const why = each.error ? `${each.error.code}: ${each.error.message}` : (each.reason ?? "");
    return h("li", { class: `step ${tone}` }, icon(shape, 14), h("div", null, h("div", { class: "step-head" }, h("span", null, `Attempt ${each.number}: ${text.toLowerCase()}`), h("span", { class: "push soft" }, lasted)), why && h("div", { class: "row-sub wrap" }, h("bdi", null, cut(String(why), 300)))));
  });
  return section("Attempts", "attempts", h("ol", { class: "steps" }, entries));
}
