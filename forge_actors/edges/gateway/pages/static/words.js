// The states of jobs and what they wait for, in words, with a shape and a tone each.

import { tail } from "/assets/text.js";

export const STATES = {
  running: ["Running", "play", "run"],
  dispatched: ["Starting", "play", "run"],
  queued: ["Queued", "ring", "wait"],
  waiting_for_dependency: ["Waits for a job", "wait", "wait"],
  waiting_for_workspace: ["Waits for its workspace", "wait", "wait"],
  waiting_for_heavy_check: ["Waits for a heavy check", "wait", "wait"],
  waiting_for_integration: ["Waits for an integration", "wait", "wait"],
  waiting_for_release_barrier: ["Waits for a release barrier", "wait", "wait"],
  waiting_for_approval: ["Asks", "talk", "warn"],
  waiting_for_limit: ["Waits for a usage limit", "hourglass", "wait"],
  waiting_for_retry: ["Waits for its next attempt", "wait", "wait"],
  succeeded: ["Succeeded", "check", "good"],
  failed: ["Failed", "cross", "bad"],
  timed_out: ["Timed out", "hourglass", "bad"],
  cancelled: ["Cancelled", "slash", "calm"],
  orphaned: ["Orphaned", "unknown", "warn"],
  stale: ["Stale", "dash", "calm"],
  human_attention_required: ["Needs a person", "alert", "warn"],
};
export const RUNNING = ["dispatched", "running"];
export const ENDED = [
  "succeeded", "failed", "timed_out", "cancelled", "orphaned", "stale", "human_attention_required",
];
export const WAITING = Object.keys(STATES).filter(
  (state) => !RUNNING.includes(state) && !ENDED.includes(state),
);
export const KINDS = [
  "repository-command", "check", "verify-edit", "agent-run", "dispatch-task", "integration",
  "release-gate",
];

const PAUSED = ["Paused", "pause", "calm"];
const HELD = ["Held", "pause", "calm"];

/** Word, shape and tone of how a job is. */
export function stateOf(job) {
  if (job.paused) return PAUSED;
  if (isHeld(job)) return HELD;
  return STATES[job.state] ?? [job.state.replaceAll("_", " "), "unknown", "calm"];
}

const FOR = {
  dependency: "Waits for another job",
  claim: "Waits for a claim",
  token: "Waits for its turn",
  pause: "Waits for the end of a pause",
  pressure: "Waits for the machine to have room",
  limit: "Waits for a usage limit to be reset",
  approval: "Waits for an answer",
  agent: "Waits for an agent program",
  retry: "Waits for its next attempt",
  reservation: "Waits for a job that goes first",
  disabled: "Its repository is disabled",
  policy: "Cannot run",
};

const ID = /\b[0-9][0-9a-z]{18}\b/g;

/** A text with the ids of jobs as people know them. */
export const shortened = (text) => text.replace(ID, tail);

/** Why a job waits, in a sentence without its dot. */
export function reason(job) {
  const { waiting } = job;
  if (!waiting) return stateOf(job)[0];
  if (isHeld(job)) return "Held by a person";
  const what = FOR[waiting.kind] ?? waiting.kind;
  const place = waiting.position ? `, number ${waiting.position} in line` : "";
  return waiting.detail ? `${what}: ${shortened(waiting.detail)}${place}` : `${what}${place}`;
}

/** Whether a person holds it back with `hold`. */
export const isHeld = (job) => job.waiting?.kind === "pause" && /\bheld\b/.test(job.waiting.detail);

export const TOKENS = {
  workers: "Workers",
  heavy_checks: "Heavy checks",
  agents: "Agents",
  active_repositories: "Repositories",
};
