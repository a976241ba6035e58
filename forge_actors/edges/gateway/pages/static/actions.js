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

async function agreed(question, work, done) {
  const answer = await confirm(question);
  if (answer !== null) await act(() => work(answer), done);
}

/** The buttons of a job; `changed` is called after each, `go` leads to a new job. */
export function jobActions(job, changed, go) {
  const told = (text) => () => {
    note(text);
    changed();
  };
  const to = (verb, text) => () => act(() => post(["jobs", job.id, verb]), told(text));
  const made = [];
  if (job.state === "waiting_for_approval") made.push(...answers(job.id, changed));
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
  made.push(button("Cancel", () => agreed(question, () => post(["jobs", job.id, "cancel"]), told("It was cancelled.")), { tone: "danger" }));
  return made;
}

/** The buttons of a job that asks something. */
export function answers(id, changed) {
  const told = (text) => () => {
    note(text);
    changed();
  };
  const reply = { title: "Answer the agent", text: "It goes on in its session with this text.", yes: "Send", field: "Your answer", required: true };
  const refuse = { title: "Deny it?", text: "The job ends as failed.", yes: "Deny", tone: "danger", field: "Reason (may be empty)" };
  return [
    button("Approve", () => act(() => post(["jobs", id, "approve"]), told("It goes on.")), { tone: "main" }),
    button("Answer", () => agreed(reply, (text) => post(["jobs", id, "answer"], { text }), told("It goes on with your answer."))),
    button("Deny", () => agreed(refuse, (reason) => post(["jobs", id, "deny"], reason.trim() ? { reason } : {}), told("It was denied.")), { tone: "danger" }),
  ];
}

/** Have an item of the inbox not be shown any more. */
export function dismiss(item, changed) {
  const question = { title: "Dismiss it?", text: "It is shown no more. Nothing else changes.", yes: "Dismiss" };
  return button("Dismiss", () => agreed(question, () => post(["inbox", "dismiss"], { item }), changed));
}
