// The first page: what needs a person, what runs, what waits and why, what is used.

import { get, page } from "/assets/api.js";
import { answers, approvals, dismiss, remedy, stepAnswers } from "/assets/actions.js";
import { fill, h, keyed, part } from "/assets/dom.js";
import { icon } from "/assets/icons.js";
import { empty, jobRow, meter, repositoryLink, rows, section } from "/assets/parts.js";
import { cut, exact, number, plural, tail } from "/assets/text.js";
import { since } from "/assets/time.js";
import { ENDED, RUNNING, STATES, TOKENS, WAITING, shortened } from "/assets/words.js";

/** Rows of one list; the rest is on the page of jobs. */
const SHOWN = 25;
const LATELY = 8;

const ITEMS = {
  question: ["A question", "talk"],
  approval: ["Waits to be allowed", "lock"],
  effect: ["Was kept from something", "alert"],
  provider: ["A provider is closed", "lock"],
  budget: ["A budget is spent", "lock"],
  webhook: ["A webhook is closed", "lock"],
  controller: ["A controller waits for you", "talk"],
  workflow: ["A workflow needs you", "talk"],
  epic: ["An EPIC needs you", "alert"],
  trust: ["Trusted files were changed", "alert"],
  aside: ["Set aside", "alert"],
  claims: ["Claims are kept", "lock"],
  job: ["A job needs a look", "alert"],
  worktree: ["A worktree has to stay", "branch"],
};

export function overview({ root, signal, refresh, say }) {
  const head = h("h1", { class: "hidden" }, "Overview");
  const notices = h("div", { class: "notices" });
  const attention = h("div");
  const capacity = h("div");
  const counts = h("div");
  const begin = h("div");
  const lists = { running: rows("Running jobs"), waiting: rows("Waiting jobs"), lately: rows("Jobs that ended lately") };
  const more = { running: h("p", { class: "more" }), waiting: h("p", { class: "more" }), lately: h("p", { class: "more" }) };
  const running = section("Running", "running", lists.running, more.running);
  const waiting = section("Waiting", "waiting", lists.waiting, more.waiting);
  const lately = section("Ended lately", "lately", lists.lately, more.lately);
  const columns = h("div", { class: "columns" }, h("div", null, running, waiting), h("div", null, lately));
  fill(root, head, notices, attention, counts, capacity, begin, columns);
  let before = null;

  async function load() {
    const few = { limit: SHOWN };
    const [status, inbox, now, later, ended] = await Promise.all([
      get(["status"], {}, signal),
      get(["inbox"], {}, signal),
      get(["jobs"], { ...few, state: RUNNING }, signal),
      get(["jobs"], { ...few, state: WAITING }, signal),
      get(["jobs"], { limit: LATELY, state: ENDED }, signal),
    ]);
    const total = (states) => states.reduce((sum, each) => sum + (status.counts[each] ?? 0), 0);
    keyed(notices, warnings(status), (each) => each, notice);
    part(attention, "attention", inbox, () => inboxOf(inbox, refresh));
    part(counts, "counts", status.counts, () => countsOf(total, status.counts));
    part(capacity, "capacity", [status.capacity, status.providers], () => capacityOf(status));
    part(begin, "begin", [status.repositories.known, total(Object.keys(STATES))], ([known, all]) => begins(known, all));
    const any = total(Object.keys(STATES)) > 0;
    columns.hidden = !any;
    show("running", now.jobs, total(RUNNING), "Nothing runs now.", page("jobs") + "?state=running");
    show("waiting", later.jobs, total(WAITING), "Nothing waits.", page("jobs") + "?show=waiting");
    show("lately", ended.jobs, total(ENDED), "Nothing has ended yet.", page("jobs") + "?show=ended");
    tell(total(RUNNING), total(WAITING), inbox.items.length + inbox.more);
  }

  function show(name, jobs, all, nothing, address) {
    keyed(lists[name], jobs, (job) => job.id, jobRow);
    const rest = all - jobs.length;
    const text = jobs.length === 0 ? nothing : rest > 0 ? h("a", { href: address }, `All ${number(all)}`) : null;
    part(more[name], "more", [jobs.length === 0, rest], () => h("span", null, text));
  }

  function tell(runs, waits, needs) {
    const now = `${plural(runs, "job")} running, ${number(waits)} waiting, ${number(needs)} in the inbox`;
    if (before !== null && now !== before) say(now);
    before = now;
  }

  return { load };
}

function warnings(status) {
  const found = [...status.degraded];
  if (status.draining) found.push("It drains: nothing new starts. forge-actors drain --cancel ends that.");
  for (const { scope, since: began, jobs } of status.pauses) {
    const what = scope === "all" ? "Everything" : scope.replace(":", " ");
    found.push(`${what} is paused${jobs ? ", what runs too" : ""}, since ${exact(began)}.`);
  }
  if (status.policy?.note) {
    const until = status.policy.until ? `, until ${exact(status.policy.until)}` : "";
    found.push(`The policy is ${status.policy.mode}${until}: ${status.policy.note}.`);
  }
  if (status.pressure?.active) found.push(`The machine is under pressure, so little starts: ${status.pressure.reason}.`);
  return found;
}

const notice = (text) => h("p", { class: "notice" }, icon("alert"), h("span", null, text));

function inboxOf(inbox, refresh) {
  const all = inbox.items.length + inbox.more;
  if (all === 0) return h("div");
  const list = h("ul", { class: "cards", "aria-label": "What needs a person" }, inbox.items.map((item) => card(item, refresh)));
  const rest = inbox.more > 0 && h("p", { class: "more" }, `${number(inbox.more)} more: `, h("code", null, "forge-actors inbox"));
  return section(["Needs you ", h("span", { class: "count warn" }, number(all))], "needs", list, rest);
}

function card(item, refresh) {
  const [what, shape] = ITEMS[item.kind] ?? [item.kind, "alert"];
  const evidence = Object.entries(item.evidence);
  return h(
    "li",
    { class: "card warn" },
    h("div", { class: "card-head" }, icon(shape), h("b", null, what), item.repo && repositoryLink(item.repo), h("span", { class: "push" }, since(item.since))),
    h("p", { class: "says" }, h("bdi", null, cut(shortened(item.says), 600))),
    h(
      "details",
      null,
      h("summary", null, "Evidence and commands"),
      h("dl", { class: "facts small" }, evidence.map(([name, text]) => h("div", null, h("dt", null, name), h("dd", { class: "mono" }, h("bdi", null, cut(text, 400)))))),
      item.actions.map((each) => h("pre", { class: "command" }, each)),
    ),
    h(
      "div",
      { class: "buttons" },
      item.kind === "question" && answers(item.job, refresh),
      item.kind === "approval" && approvals(item.job, refresh),
      remedy(item, refresh),
      item.evidence.step && stepAnswers(item.evidence.workflow, item.evidence.step, refresh),
      item.kind === "workflow" && h("a", { class: "button", href: page("workflows", item.evidence.workflow), data: { row: "" } }, "Workflow"),
      item.kind === "epic" && h("a", { class: "button", href: page("epics", item.evidence.run), data: { row: "" } }, "EPIC"),
      item.job && h("a", { class: "button", href: page("jobs", item.job), data: { row: "" } }, `Job ${tail(item.job)}`),
      !["question", "approval"].includes(item.kind) && !item.evidence.step && dismiss(item.id, refresh),
    ),
  );
}

function countsOf(total, counts) {
  const entry = (count, text, address, shape, tone) =>
    h("a", { class: `tally ${count ? tone : "none"}`, href: address }, icon(shape, 14), h("b", null, number(count)), h("span", null, text));
  return h(
    "div",
    { class: "tallies" },
    entry(total(RUNNING), "running", "/jobs?state=running", "play", "run"),
    entry(total(WAITING), "waiting", "/jobs?show=waiting", "wait", "wait"),
    entry(counts.succeeded ?? 0, "succeeded", "/jobs?state=succeeded", "check", "good"),
    entry((counts.failed ?? 0) + (counts.timed_out ?? 0), "failed", "/jobs?show=failed", "cross", "bad"),
  );
}

function capacityOf({ capacity, providers }) {
  const tokens = Object.entries(capacity).map(([kind, { used, limit }]) => meter(TOKENS[kind] ?? kind, used, limit, { tone: used >= limit ? "full" : "" }));
  const others = Object.entries(providers).map(([name, provider]) => {
    const closed = provider.state !== "open";
    const why = closed ? closing(provider) : null;
    return meter(name, provider.used, provider.limit, { note: why, tone: closed ? "closed" : provider.used >= provider.limit && provider.limit > 0 ? "full" : "" });
  });
  return section("Capacity", "capacity", h("div", { class: "meters" }, tokens, others));
}

function closing(provider) {
  const account = provider.account ?? provider;
  const until = account.until ? [", opens ", since(account.until)] : "";
  return [icon("lock", 12), ` closed${account.reason ? `: ${account.reason}` : ""}`, until];
}

function begins(repositories, jobs) {
  if (repositories === 0) {
    return empty("No repository is known yet. Add one, from a folder with a git repository:", "forge-actors repo add .", "forge-actors submit --kind check -- make test");
  }
  if (jobs === 0) return empty("No job yet. Submit one, from a folder of a repository:", "forge-actors submit --kind check -- make test");
  return h("div");
}
