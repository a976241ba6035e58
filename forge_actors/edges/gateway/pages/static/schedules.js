// Schedules, and one of them: when it comes next, and what became of its times.

import { get, page, post } from "/assets/api.js";
import { act } from "/assets/actions.js";
import { note } from "/assets/dialog.js";
import { fill, h, keyed, part } from "/assets/dom.js";
import { icon } from "/assets/icons.js";
import { button, empty, facts, jobLink, repositoryLink, rows, section } from "/assets/parts.js";
import { command, number } from "/assets/text.js";
import { since } from "/assets/time.js";

/** Schedules that are in the page at once; times that are told of one. */
const MOST = 300;
const TIMES = 10;
const PAST = 50;
const SHAPES = { active: ["calm", "ring", "Active"], paused: ["warn", "pause", "Paused"], done: ["calm", "check", "Done"], quarantined: ["bad", "alert", "Set aside"] };
const DECISIONS = { run: ["run", "play"], would_run: ["calm", "ring"], failed: ["bad", "cross"] };

export function schedules({ root, signal, named }) {
  named("Schedules");
  const list = rows("Schedules");
  const total = h("span", { class: "count" });
  const rest = h("p", { class: "more" });
  const nothing = h("div");
  fill(root, h("div", { class: "head" }, h("h1", null, "Schedules"), total), list, rest, nothing);

  async function load() {
    const known = (await get(["schedules"], {}, signal)).schedules;
    fill(total, number(known.length));
    keyed(list, known.slice(0, MOST), (each) => each.name, row);
    fill(rest, known.length > MOST && [`${number(known.length - MOST)} more: `, h("code", null, "forge-actors schedule list")]);
    part(nothing, "nothing", known.length === 0, (none) => (none ? empty("No schedule yet. One that submits a job every night:", 'forge-actors schedule add nightly --cron "30 2 * * *" -- make test') : h("div")));
  }

  return { load, concerns };
}

const concerns = (happened) => happened.some((each) => each.kind.startsWith("schedule_"));

function row(each) {
  const [tone, shape] = SHAPES[each.state];
  return h(
    "li",
    { class: "row" },
    h("span", { class: `dot ${each.jobs.length ? "run" : tone}` }, icon(each.jobs.length ? "play" : shape, 14)),
    h("div", { class: "row-main" }, h("a", { class: "row-link", href: page("schedules", each.name), data: { row: "" } }, h("bdi", { class: "name" }, each.name)), h("div", { class: "row-sub" }, h("bdi", null, each.why ?? each.waiting[0]?.reason ?? each.trigger))),
    h("div", { class: "row-meta" }, h("bdi", null, each.repo), h("span", null, `${number(each.runs)} runs`)),
    h("div", { class: "row-time" }, each.next ? moment(each.next) : each.waits_for && each.state === "active" ? "waits" : SHAPES[each.state][2].toLowerCase()),
  );
}

export function schedule({ root, parts: [name], signal, refresh, named }) {
  named(name);
  const head = h("div");
  const about = h("div");
  const ahead = h("div");
  const past = h("div");
  fill(root, head, h("div", { class: "columns" }, h("div", null, ahead, past), about));

  async function load() {
    const [known, next, told] = await Promise.all([get(["schedules", name], {}, signal), get(["schedules", name, "next"], { count: TIMES }, signal), get(["schedules", name, "occurrences"], { limit: PAST }, signal)]);
    part(head, "head", [known.state, known.why], () => headOf(known, refresh));
    part(about, "about", known, () => aboutOf(known));
    part(ahead, "ahead", next.times, () => section("Next", "next", next.times.length ? h("ul", { class: "plain-list" }, next.times.map((each) => h("li", null, comes(each)))) : h("p", { class: "soft" }, "It comes no more by itself.")));
    part(past, "past", told.occurrences, () => section("What became of its times", "past", told.occurrences.length ? h("ul", { class: "rows" }, told.occurrences.map(occurrence)) : h("p", { class: "soft" }, "None has come yet.")));
  }

  return { load, concerns };
}

/** A time ahead, or what comes to pass at none that is known. */
function comes(each) {
  if (each.at === null) return h("bdi", null, each.runs ? `Runs ${each.reason}` : `Does not run ${each.reason}`);
  return [h("span", { class: "mono" }, each.at), h("div", { class: "row-sub" }, each.runs ? "runs" : `does not run: ${each.reason}`)];
}

function occurrence(each) {
  const [tone, shape] = DECISIONS[each.decision] ?? ["warn", "pause"];
  return h(
    "li",
    { class: "row" },
    h("span", { class: `dot ${tone}` }, icon(shape, 14)),
    h("div", { class: "row-main" }, h("div", { class: "name" }, each.decision.replace("_", " "), each.count > 1 && ` (${number(each.count)} times)`), h("div", { class: "row-sub" }, h("bdi", null, each.reason))),
    h("div", { class: "row-meta" }, each.job && jobLink(each.job)),
    h("div", { class: "row-time" }, since(each.due)),
  );
}

function headOf(known, refresh) {
  const to = (verb, text) => () => act(() => post(["schedules", known.name, verb]), () => told(text));
  const told = (text) => {
    note(text);
    refresh();
  };
  const made = [];
  if (known.state !== "quarantined") made.push(button("Run now", to("run", "Its job is submitted."), { tone: "main" }));
  if (known.state === "active") made.push(button("Pause", to("pause", "It runs no more until it is resumed.")));
  if (known.state === "paused") made.push(button("Resume", to("resume", "It runs again, from now on.")));
  const [tone, shape, text] = SHAPES[known.state];
  return h(
    "div",
    null,
    h("div", { class: "head" }, h("h1", null, h("bdi", null, known.name)), h("span", { class: `state ${tone}` }, icon(shape, 14), text), h("div", { class: "buttons push" }, made)),
    known.why && h("p", { class: "notice" }, icon("alert"), h("bdi", null, known.why)),
  );
}

function aboutOf(known) {
  const { job, wake } = known.definition;
  const usual = ["name", "repo", "job", "wake", "every", "cron", "at", "on", "manual", "timezone"];
  const policies = Object.entries(known.definition).filter(([key]) => !usual.includes(key));
  return section(
    "Schedule",
    "schedule",
    facts([
      ["When", h("bdi", null, known.trigger)],
      ["Waits for", known.waits_for && h("bdi", null, known.waits_for)],
      ["Clock changes", known.clock_changes],
      ["Repository", repositoryLink(known.repo)],
      ["Wakes", wake && h("bdi", null, `controller ${wake}`)],
      ["Job", !wake && h("bdi", { class: "mono" }, [job.agent && `agent ${job.agent}`, command(job.argv ?? [])].filter(Boolean).join(" "))],
      ["Policies", policies.length > 0 && h("ul", { class: "plain-list" }, policies.map(([key, value]) => h("li", null, `${key.replaceAll("_", " ")}: ${value}`)))],
      ["Runs", `${number(known.runs)}, ${number(known.failures)} failures in a row`],
      ["Its jobs", known.jobs.length > 0 && known.jobs.map((id) => h("div", null, jobLink(id)))],
      ["Waiting", known.waiting.length > 0 && known.waiting.map((each) => h("div", null, since(each.due), " ", h("bdi", null, each.reason || "its moment comes soon")))],
      ["File", known.source && h("bdi", { class: "mono" }, known.source)],
    ]),
  );
}

/** A time ahead, in the time of this browser. */
function moment(text) {
  const at = new Date(text);
  const near = at - Date.now() < 20 * 3600 * 1000;
  const shown = near ? at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : at.toLocaleDateString([], { month: "short", day: "numeric" });
  return h("time", { datetime: text, title: text }, shown);
}
