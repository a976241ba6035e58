// What can be done to a job, and asking first where it cannot be undone.

import { page, post } from "/assets/api.js";
import { confirm, note } from "/assets/dialog.js";
import { button } from "/assets/parts.js";
import { tail } from "/assets/text.js";
import { ENDED, RUNNING, isHeld } from "/assets/words.js";

/** Do it, then `done`; what was refused is said. */
export async function act(work, done) {
  try {
    await done(await work());
  } catch (error) {
    note(error.message, "bad");
  }
}

function told(text, changed) {
  note(text);
  changed();
}

/** Do it once somebody has said yes to a question. */
export async function agreed(question, work, done) {
  const answer = await confirm(question);
  if (answer !== null) await act(() => work(answer), done);
}

/** The buttons of a job; `changed` is called after each, `go` leads to a new job. */
export function jobActions(job, changed, go) {
  const to = (verb, text) => () => act(() => post(["jobs", job.id, verb]), () => told(text, changed));
  const made = [];
  if (job.state === "waiting_for_approval") {
    const asks = job.effects?.held_back?.length ? approvals : answers;
    made.push(...asks(job.id, changed));
  }
  if (ENDED.includes(job.state)) {
    made.push(button("Retry", () => act(() => post(["jobs", job.id, "retry"], { origin: "pages" }), (retry) => go(page("jobs", retry.id))), { tone: "main" }));
    return made;
  }
  if (RUNNING.includes(job.state)) {
    if (job.paused) made.push(button("Resume", to("resume", "It goes on."), { tone: "main" }));
    else made.push(button("Pause", to("pause", "It is paused."), { title: "Suspend all its processes" }));
  } else if (isHeld(job)) {
    made.push(button("Let go on", to("unhold", "It may start again."), { tone: "main" }));
  } else if (job.state !== "waiting_for_approval") {
    made.push(button("Hold", to("hold", "It is held."), { title: "Keep it from starting" }));
  }
  const question = {
    title: `Cancel job ${tail(job.id)}?`,
    text: RUNNING.includes(job.state) ? "It is asked to stop, and ended if it does not." : "It will never start.",
    yes: "Cancel the job",
    tone: "danger",
  };
  made.push(button("Cancel", () => agreed(question, () => post(["jobs", job.id, "cancel"]), () => told("It was cancelled.", changed)), { tone: "danger" }));
  return made;
}

/** The buttons of a job that asks something. */
export function answers(id, changed) {
  const reply = { title: "Answer the agent", text: "It goes on in its session with this text.", yes: "Send", field: "Your answer", required: true };
  const send = (text) => post(["jobs", id, "answer"], { text });
  const [approve, deny] = approvals(id, changed);
  return [approve, button("Answer", () => agreed(reply, send, () => told("It goes on with your answer.", changed))), deny];
}

/** Those of one that waits to be allowed something. */
export function approvals(id, changed) {
  const refuse = { title: "Deny it?", text: "The job ends as failed.", yes: "Deny", tone: "danger", field: "Reason (may be empty)" };
  const deny = (reason) => post(["jobs", id, "deny"], reason.trim() ? { reason } : {});
  return [
    button("Approve", () => act(() => post(["jobs", id, "approve"]), () => told("It was approved.", changed)), { tone: "main" }),
    button("Deny", () => agreed(refuse, deny, () => told("It was denied.", changed)), { tone: "danger" }),
  ];
}

/** Those of a step of a workflow that asks something. */
export function stepAnswers(workflow, step, changed) {
  const say = (yes) => post(["workflows", workflow, "answer"], { step, yes });
  const refuse = { title: `Say no to ${step}?`, text: "The step fails, and what depends on it is left out.", yes: "Say no", tone: "danger" };
  return [
    button("Yes", () => act(() => say(true), () => told("It goes on.", changed)), { tone: "main" }),
    button("No", () => agreed(refuse, () => say(false), changed), { tone: "danger" }),
  ];
}

const REMEDIES = {
  provider: ["Open it again", ({ evidence }) => post(["resume"], { scope: `provider:${evidence.provider}` }), "Its jobs start again."],
  webhook: ["Open it again", ({ evidence }) => post(["webhooks", evidence.webhook, "open"]), "It is told what came meanwhile."],
  controller: ["Go on", ({ evidence }) => post(["controllers", evidence.controller, "resume"]), "It goes on."],
  aside: ["Try again", ({ repo }) => post(["repositories", repo, "enable"]), "It is tried again."],
};

/** The button of an item of the inbox that one can do something about at once, if any. */
export function remedy(item, changed) {
  if (!Object.hasOwn(REMEDIES, item.kind)) return null;
  const [text, work, done] = REMEDIES[item.kind];
  return button(text, () => act(() => work(item), () => told(done, changed)), { tone: "main" });
}

/** Have an item of the inbox not be shown any more. */
export function dismiss(item, changed) {
  const question = { title: "Dismiss it?", text: "It is shown no more. Nothing else changes.", yes: "Dismiss" };
  return button("Dismiss", () => agreed(question, () => post(["inbox", "dismiss"], { item }), changed));
}
