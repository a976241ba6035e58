// Runs of EPICs, and one of them: its issues, the graph of them, and how it is stopped.

import { get, page, post } from "/assets/api.js";
import { act, agreed } from "/assets/actions.js";
import { note } from "/assets/dialog.js";
import { fill, h, keyed, part } from "/assets/dom.js";
import { icon } from "/assets/icons.js";
import { button, empty, facts, jobLink, repositoryLink, rows, section } from "/assets/parts.js";
import { cut, number } from "/assets/text.js";
import { since } from "/assets/time.js";

/** Runs that are in the page at once; issues that are drawn; characters of a reason. */
const MOST = 100;
const MOST_DRAWN = 300;
const LONG = 300;
const STATES = { waiting: ["calm", "wait", "Waits"], running: ["run", "play", "Running"] };
const ENDS = { "nothing-admissible": ["good", "check", "Nothing left to begin"], drained: ["calm", "slash", "Drained"], stopped: ["calm", "slash", "Stopped"], interrupted: ["warn", "slash", "Interrupted"], degraded: ["bad", "alert", "Degraded"] };
const ENDED = ["warn", "alert", "Ended"];
const ISSUES = { running: ["run", "play", "running"], ready: ["calm", "ring", "ready"], blocked: ["calm", "wait", "blocked"], held: ["warn", "alert", "held"], owned: ["run", "lock", "owned"], done: ["good", "check", "done"], closed: ["good", "check", "closed"], unsupported: ["calm", "dash", "unsupported"] };
const ORDER = Object.keys(ISSUES);
const BAD = ["blocked", "failed"];

const shape = (run) => (run.state === "ended" ? (ENDS[run.reason] ?? ENDED) : STATES[run.state]);
const counted = (view) => ORDER.filter((name) => view.counts[name]).map((name) => `${number(view.counts[name])} ${name}`).join(", ");
const called = (run) => run.view?.title || run.epic;

export function epics({ root, signal, named }) {
  named("EPICs");
  const list = rows("Runs of EPICs");
  const rest = h("p", { class: "more" });
  const nothing = h("div");
  fill(root, h("div", { class: "head" }, h("h1", null, "EPICs")), list, rest, nothing);

  async function load() {
    const told = await get(["epics"], { limit: MOST }, signal);
    keyed(list, told.epics, (each) => each.id, row);
    fill(rest, told.next && ["Older ones: ", h("code", null, "forge-actors epic list")]);
    part(nothing, "nothing", told.epics.length === 0, (none) => (none ? empty("No EPIC was worked through yet. A run is begun in a checkout; EPIC is the address of an issue, or a plan:", "forge-actors epic run --detach EPIC") : h("div")));
  }

  return { load, concerns: (happened) => happened.some((each) => each.kind.startsWith("epic_")) };
}

function row(run) {
  const [tone, drawing, text] = shape(run);
  const about = [run.view && `#${run.view.number}`, run.why ?? (run.view && counted(run.view))].filter(Boolean).join(" · ");
  return h(
    "li",
    { class: "row" },
    h("span", { class: `dot ${tone}` }, icon(drawing, 14)),
    h("div", { class: "row-main" }, h("a", { class: "row-link", href: page("epics", run.id), data: { row: "" } }, h("bdi", { class: "name" }, cut(called(run), LONG))), h("div", { class: "row-sub" }, h("bdi", null, cut(about, LONG)))),
    h("div", { class: "row-meta" }, h("bdi", null, run.repo), h("span", null, text)),
    h("div", { class: "row-time" }, since(run.ended_at ?? run.made_at)),
  );
}

export function epic({ root, parts: [id], signal, refresh, named }) {
  named(id);
  const head = h("div");
  const drawn = h("div");
  const issues = h("div");
  const about = h("div");
  let mine = new Set();
  fill(root, head, drawn, h("div", { class: "columns" }, issues, about));

  async function load() {
    const run = await get(["epics", id], {}, signal);
    const children = run.view?.children ?? [];
    mine = new Set(children.map((each) => each.job));
    named(called(run));
    part(head, "head", [run.state, run.why, run.reason, called(run), run.view?.admission, run.view?.reason, run.view?.cycles], () => headOf(run, refresh));
    part(drawn, "drawn", children.map((each) => [each.number, each.state, each.reason, each.phase, each.title]), () => pictureOf(run, children));
    part(issues, "issues", [run.state, children], () => issuesOf(run, children));
    part(about, "about", [run, run.view?.counts], () => aboutOf(run));
  }

  // A worker tells of the end of its job; its phases show with what comes next.
  const concerns = (happened) => happened.some((each) => (each.kind.startsWith("epic_") ? each.data.epic === id : mine.has(each.job)));
  return { load, concerns };
}

function headOf(run, refresh) {
  const stop = (mode, text) => [
    () => post(["epics", run.id, "stop"], { mode }),
    () => {
      note(text);
      refresh();
    },
  ];
  const made = [];
  if (run.state !== "ended") {
    const question = { title: "Interrupt its workers?", text: "Nothing more begins, and its workers end the step they are at. The next run goes on from their last boundary.", yes: "Stop now", tone: "danger" };
    made.push(button("Stop", () => act(...stop("drain", "Its workers come to their next boundary; nothing more begins."))));
    made.push(button("Stop now", () => agreed(question, ...stop("now", "Its workers are interrupted.")), { tone: "danger" }));
  }
  const [tone, drawing, text] = shape(run);
  const { admission, reason, cycles } = run.view ?? {};
  const notices = [run.why, run.state !== "ended" && admission !== "open" && reason && `Nothing more begins (${admission}): ${reason}`];
  for (const circle of cycles ?? []) notices.push(`These wait for each other: ${circle.map((each) => `#${each}`).join(", ")}`);
  return h(
    "div",
    null,
    h("div", { class: "head" }, h("h1", null, h("bdi", null, cut(called(run), LONG))), h("span", { class: `state ${tone}` }, icon(drawing, 14), text), h("div", { class: "buttons push" }, made)),
    notices.filter(Boolean).map((each) => h("p", { class: "notice" }, icon("alert"), h("bdi", null, each))),
  );
}

function pictureOf(run, children) {
  if (children.length < 2 || children.length > MOST_DRAWN) return h("div");
  // The picture of these states: another address than that of others.
  const seen = children.map((each) => each.state[0] + (each.phase?.[0] ?? "")).join("");
  return h("div", { class: "graph" }, h("img", { src: `/v1/epics/${encodeURIComponent(run.id)}/graph.svg?seen=${seen}`, alt: `The ${children.length} issues as a graph; they are listed below.` }));
}

function issuesOf(run, children) {
  const none = run.state === "ended" ? "Its graph was never read." : "Its graph was not read yet.";
  return section("Issues", "issues", children.length ? h("ul", { class: "rows" }, children.map(issueRow)) : h("p", { class: "more" }, none));
}

/** Why an issue is where it is, where its state alone does not say it. */
function why({ state, reason }) {
  const kind = reason.split(":", 1)[0];
  const rest = reason.slice(kind.length + 1);
  if (kind === reason || ["done", "running"].includes(state) || rest === "settled-namespace") return null;
  if (reason === "blocked:cycle") return "waits for itself";
  return kind === "blocked" ? `waits for ${rest.replaceAll(",", ", ")}` : rest.replaceAll("-", " ");
}

function issueRow(each) {
  let [tone, drawing, text] = ISSUES[each.state] ?? ISSUES.unsupported;
  if (BAD.includes(each.phase) && each.state !== "closed") [tone, drawing, text] = ["bad", "cross", each.phase];
  const told = [!BAD.includes(each.phase) && each.phase?.replaceAll("_", " "), why(each), each.detail];
  return h(
    "li",
    { class: "row" },
    h("span", { class: `dot ${tone}` }, icon(drawing, 14)),
    h("div", { class: "row-main" }, h("bdi", { class: "name" }, `#${each.number} ${each.title}`), h("div", { class: "row-sub" }, h("bdi", null, cut(told.filter(Boolean).join(" · "), LONG)))),
    h("div", { class: "row-meta" }, each.job && jobLink(each.job), h("span", null, text)),
    h("div", { class: "row-time" }, ""),
  );
}

function aboutOf(run) {
  const { view } = run;
  return section(
    "Run",
    "run",
    facts([
      ["EPIC", h("bdi", { class: "mono" }, run.epic)],
      ["Repository", repositoryLink(run.repo)],
      ["On GitHub", view && !view.repository.startsWith("plan ") && h("bdi", null, `${view.repository} #${view.number}`)],
      ["Issues", view && counted(view)],
      ["At once", view?.max_parallel && number(view.max_parallel)],
      ["Begun", [since(run.made_at), " by ", h("bdi", null, run.origin)]],
      ["Graph read", view?.observed_at && since(view.observed_at)],
      ["Ended", run.ended_at && since(run.ended_at)],
      ["Id", h("span", { class: "mono" }, run.id)],
    ]),
  );
}
