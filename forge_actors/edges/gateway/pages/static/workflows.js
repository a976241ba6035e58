// Workflows, and one of them: its steps, the graph of them, and what a person can do.

import { get, page, post } from "/assets/api.js";
import { act, agreed, stepAnswers } from "/assets/actions.js";
import { note } from "/assets/dialog.js";
import { fill, h, keyed, part } from "/assets/dom.js";
import { icon } from "/assets/icons.js";
import { button, empty, facts, jobLink, rows, section } from "/assets/parts.js";
import { number } from "/assets/text.js";
import { since } from "/assets/time.js";

/** Workflows that are in the page at once; steps of one; steps that are drawn. */
const MOST = 100;
const MOST_STEPS = 500;
const MOST_DRAWN = 300;
const SHAPES = { running: ["run", "play", "Running"], paused: ["warn", "pause", "Paused"], cancelling: ["warn", "slash", "Cancelling"], succeeded: ["good", "check", "Succeeded"], failed: ["bad", "cross", "Failed"], cancelled: ["calm", "slash", "Cancelled"], human_attention_required: ["bad", "alert", "Needs a person"], quarantined: ["bad", "alert", "Set aside"] };
const STEPS = { waiting: ["calm", "wait"], asking: ["warn", "talk"], running: ["run", "play"], succeeded: ["good", "check"], failed: ["bad", "cross"], skipped: ["calm", "dash"], cancelled: ["calm", "slash"] };
const ORDER = ["succeeded", "failed", "skipped", "cancelled", "running", "asking", "waiting"];

export function workflows({ root, signal, named }) {
  named("Workflows");
  const list = rows("Workflows");
  const rest = h("p", { class: "more" });
  const nothing = h("div");
  fill(root, h("div", { class: "head" }, h("h1", null, "Workflows")), list, rest, nothing);

  async function load() {
    const told = await get(["workflows"], { limit: MOST }, signal);
    keyed(list, told.workflows, (each) => each.id, row);
    fill(rest, told.next && ["Older ones: ", h("code", null, "forge-actors workflow list")]);
    part(nothing, "nothing", told.workflows.length === 0, (none) => (none ? empty("No workflow yet. One is begun from a file:", "forge-actors workflow run release.toml") : h("div")));
  }

  return { load, concerns };
}

const concerns = (happened) => happened.some((each) => each.kind.startsWith("workflow_") || each.kind.startsWith("job_"));

const counted = (each) => ORDER.filter((name) => each.counts[name]).map((name) => `${number(each.counts[name])} ${name}`).join(", ");

function row(each) {
  const [tone, shape, text] = SHAPES[each.state];
  return h(
    "li",
    { class: "row" },
    h("span", { class: `dot ${tone}` }, icon(shape, 14)),
    h("div", { class: "row-main" }, h("a", { class: "row-link", href: page("workflows", each.id), data: { row: "" } }, h("bdi", { class: "name" }, each.name)), h("div", { class: "row-sub" }, h("bdi", null, each.why ?? counted(each)))),
    h("div", { class: "row-meta" }, h("span", null, each.kind), h("span", null, text)),
    h("div", { class: "row-time" }, since(each.ended_at ?? each.made_at)),
  );
}

export function workflow({ root, parts: [id], signal, refresh, named }) {
  named(id);
  const head = h("div");
  const asks = h("div");
  const drawn = h("div");
  const steps = h("div");
  const about = h("div");
  fill(root, head, asks, drawn, h("div", { class: "columns" }, steps, about));

  async function load() {
    const known = await get(["workflows", id], {}, signal);
    named(known.name);
    part(head, "head", [known.state, known.why, known.name], () => headOf(known, refresh));
    part(asks, "asks", known.steps.filter((each) => each.state === "asking"), (asking) => asksOf(known, asking, refresh));
    part(drawn, "drawn", known.steps.map((each) => [each.name, each.state]), () => pictureOf(known));
    part(steps, "steps", known.steps, () => stepsOf(known));
    part(about, "about", [known.counts, known.ended_at], () => aboutOf(known));
  }

  return { load, concerns };
}

function headOf(known, refresh) {
  const done = (text) => () => {
    note(text);
    refresh();
  };
  const to = (verb, text, body) => () => act(() => post(["workflows", known.id, verb], body), done(text));
  const made = [];
  if (known.state === "running") made.push(button("Pause", to("pause", "Nothing new begins until it is resumed.")));
  if (known.state === "paused") made.push(button("Resume", to("resume", "It goes on."), { tone: "main" }));
  if (known.state === "running" || known.state === "paused") {
    const question = { title: `Cancel ${known.name}?`, text: "Nothing new begins, and its jobs are ended.", yes: "Cancel the workflow", tone: "danger" };
    made.push(button("Cancel", () => agreed(question, () => post(["workflows", known.id, "cancel"]), done("Its jobs are ended.")), { tone: "danger" }));
  }
  if (["failed", "cancelled", "human_attention_required", "quarantined"].includes(known.state)) made.push(button("Retry", to("retry", "What failed begins anew.", {}), { tone: "main" }));
  const [tone, shape, text] = SHAPES[known.state];
  return h(
    "div",
    null,
    h("div", { class: "head" }, h("h1", null, h("bdi", null, known.name)), h("span", { class: `state ${tone}` }, icon(shape, 14), text), h("div", { class: "buttons push" }, made)),
    known.why && h("p", { class: "notice" }, icon("alert"), h("bdi", null, known.why)),
  );
}

function asksOf(known, asking, refresh) {
  return h(
    "div",
    null,
    asking.map((each) => h("div", { class: "notice" }, icon("talk"), h("div", null, h("bdi", { class: "name" }, each.name), ": ", h("bdi", null, each.gate)), h("div", { class: "buttons push" }, stepAnswers(known.id, each.name, refresh)))),
  );
}

function pictureOf(known) {
  if (known.steps.length < 2 || known.steps.length > MOST_DRAWN) return h("div");
  // The picture of these states: another address than that of others.
  const seen = known.steps.map((each) => each.state[0]).join("");
  return h("div", { class: "graph" }, h("img", { src: `/v1/workflows/${encodeURIComponent(known.id)}/graph?seen=${seen}`, alt: `The ${known.steps.length} steps as a graph; they are listed below.` }));
}

function stepsOf(known) {
  const more = known.steps.length - MOST_STEPS;
  return section("Steps", "steps", h("ul", { class: "rows" }, known.steps.slice(0, MOST_STEPS).map(stepRow)), more > 0 && h("p", { class: "more" }, `${number(more)} more: `, h("code", null, `forge-actors workflow show ${known.id}`)));
}

function stepRow(each) {
  const [tone, shape] = STEPS[each.state];
  const values = Object.entries(each.outputs).map(([name, value]) => `${name}=${value}`).join(" ");
  const told = each.why ?? (values || (each.after.length ? `after ${each.after.join(", ")}` : ""));
  return h(
    "li",
    { class: "row" },
    h("span", { class: `dot ${tone}` }, icon(shape, 14)),
    h("div", { class: "row-main" }, h("bdi", { class: "name" }, each.name), h("div", { class: "row-sub" }, h("bdi", null, told))),
    h("div", { class: "row-meta" }, each.job && jobLink(each.job), h("span", null, each.tries > 1 ? `${each.state}, ${number(each.tries)} tries` : each.state)),
    h("div", { class: "row-time" }, each.ended_at ? since(each.ended_at) : each.began_at ? since(each.began_at) : ""),
  );
}

function aboutOf(known) {
  return section(
    "Workflow",
    "workflow",
    facts([
      ["Kind", known.kind],
      ["Steps", counted(known)],
      ["Rounds", known.goal && `${number(known.goal.round)} of ${number(known.goal.rounds)}`],
      ["Begun", [since(known.made_at), " by ", h("bdi", null, known.origin)]],
      ["Ended", known.ended_at && since(known.ended_at)],
      ["Id", h("span", { class: "mono" }, known.id)],
      ["Digest", h("span", { class: "mono" }, known.digest.slice(0, 16))],
      ["File", known.source && h("bdi", { class: "mono" }, known.source)],
    ]),
  );
}
