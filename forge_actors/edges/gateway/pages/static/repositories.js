// The repositories, and one of them: how its checkout is and what goes on in it.

import { get, page, post } from "/assets/api.js";
import { act } from "/assets/actions.js";
import { note } from "/assets/dialog.js";
import { fill, h, keyed, part } from "/assets/dom.js";
import { icon } from "/assets/icons.js";
import { button, empty, facts, jobLink, jobRow, rows, section } from "/assets/parts.js";
import { bytes, number, plural } from "/assets/text.js";
import { since } from "/assets/time.js";
import { ENDED, RUNNING, STATES, WAITING } from "/assets/words.js";

const SHOWN = 25;
/** Repositories that are in the page at once. */
const MOST = 200;

export function repositories({ root, signal, named }) {
  named("Repositories");
  const list = h("ul", { class: "rows", "aria-label": "Repositories" });
  const total = h("span", { class: "count" });
  const words = h("input", { id: "by-name", type: "search", placeholder: "Name", autocomplete: "off", spellcheck: "false", on: { input: () => show() } });
  const rest = h("p", { class: "more" });
  const nothing = h("div");
  const filter = h("div", { class: "filters" }, h("div", { class: "selects" }, h("label", { class: "hidden", for: "by-name" }, "Name of a repository"), words));
  let known = [];
  fill(root, h("div", { class: "head" }, h("h1", null, "Repositories"), total), filter, list, rest, nothing);

  async function load() {
    known = (await get(["repositories"], {}, signal)).repositories;
    fill(total, number(known.length));
    filter.hidden = known.length < 10;
    part(nothing, "nothing", known.length === 0, (none) => (none ? empty("No repository is known yet. Add one, from a folder with a git repository:", "forge-actors repo add .") : h("div")));
    show();
  }

  function show() {
    const wanted = words.value.trim().toLowerCase();
    const found = known.filter((each) => each.name.includes(wanted));
    found.sort((one, other) => other.running - one.running || other.waiting - one.waiting || (one.name < other.name ? -1 : 1));
    keyed(list, found.slice(0, MOST).map(steady), (each) => each.id, row);
    fill(rest, found.length > MOST && `${number(found.length - MOST)} more; a name finds them`);
  }

  return { load };
}

/** Without what changes at each look though nothing has changed. */
function steady(each) {
  const { age_ms: _, ...status } = each.status;
  return { ...each, status };
}

function row(each) {
  const git = each.status;
  const busy = each.running ? "run" : each.enabled ? "calm" : "warn";
  const counts = [each.running && `${number(each.running)} running`, each.waiting && `${number(each.waiting)} waiting`].filter(Boolean);
  return h(
    "li",
    { class: "row" },
    h("span", { class: `dot ${busy}` }, icon(each.enabled ? (each.running ? "play" : "ring") : "pause", 14)),
    h(
      "div",
      { class: "row-main" },
      h("a", { class: "row-link", href: page("repositories", each.name), data: { row: "" } }, h("bdi", { class: "name" }, each.name)),
      h("div", { class: "row-sub" }, h("bdi", null, each.note ?? each.path)),
    ),
    h("div", { class: "row-meta" }, gitWords(git), each.attention > 0 && h("span", { class: "state warn" }, icon("alert", 14), plural(each.attention, "needs", "need") + " a look")),
    h("div", { class: "row-time" }, each.enabled ? counts.join(", ") || "idle" : "disabled"),
  );
}

/** How a checkout is, in words: its branch, and what is not committed or not pushed. */
function gitWords(git) {
  if (!git || git.head === null) return h("span", { class: "soft" }, git?.unborn ? "no commit yet" : "not looked at yet");
  const words = [];
  if (git.clean) words.push("clean");
  for (const [count, text] of [[git.conflicts, "in conflict"], [git.staged, "staged"], [git.unstaged, "changed"], [git.untracked, "untracked"]]) {
    if (count) words.push(`${number(count)}${git.at_least ? "+" : ""} ${text}`);
  }
  if (git.ahead) words.push(`${number(git.ahead)} ahead`);
  if (git.behind) words.push(`${number(git.behind)} behind`);
  if (git.operation) words.push(`in a ${git.operation}`);
  return h("span", { class: "git" }, icon("branch", 14), h("bdi", { class: "mono" }, git.detached ? git.head.slice(0, 10) : git.branch), h("span", { class: "soft" }, words.join(", ")));
}

export function repository({ root, parts: [name], signal, refresh, named }) {
  named(name);
  const head = h("div");
  const about = h("div");
  const lists = { running: rows("Running jobs"), waiting: rows("Waiting jobs"), ended: rows("Ended jobs") };
  const blocks = {
    running: section("Running", "running", lists.running),
    waiting: section("Waiting", "waiting", lists.waiting),
    ended: section("Ended", "ended", lists.ended),
  };
  const trees = h("div");
  const all = h("p", { class: "more" }, h("a", { href: `/jobs?repo=${encodeURIComponent(name)}` }, "All of its jobs"));
  fill(root, head, h("div", { class: "columns" }, h("div", null, blocks.running, blocks.waiting, blocks.ended, all), h("div", null, about, trees)));

  async function load() {
    const details = await get(["repositories", name], {}, signal);
    const list = (state) => get(["jobs"], { repo: name, state, limit: SHOWN }, signal);
    const [running, waiting, ended, worktrees] = await Promise.all([list(RUNNING), list(WAITING), list(ENDED), get(["worktrees"], { quick: 1 }, signal)]);
    part(head, "head", [details.enabled, details.note], () => headOf(details, refresh));
    part(about, "about", steady(details), () => aboutOf(details));
    for (const [which, { jobs }] of Object.entries({ running, waiting, ended })) {
      keyed(lists[which], jobs, (job) => job.id, jobRow);
      blocks[which].hidden = jobs.length === 0 && which !== "running";
    }
    blocks.running.hidden = running.jobs.length === 0;
    const mine = worktrees.worktrees.filter((each) => each.repo === name).slice(0, SHOWN);
    part(trees, "trees", mine, () => treesOf(mine));
    part(all, "none", Object.keys(details.counts).length === 0, (none) => (none ? empty("It has no job yet.", `forge-actors submit --repo ${name} -- make test`) : h("span")));
  }

  return { load, concerns: (happened) => happened.some((each) => each.repo === name || each.repo === null) };
}

function headOf(details, refresh) {
  const verb = details.enabled ? "disable" : "enable";
  const switched = () => act(() => post(["repositories", details.name, verb]), () => {
    note(details.enabled ? "Nothing new starts in it." : "Its jobs may start again.");
    refresh();
  });
  return h(
    "div",
    null,
    h("div", { class: "head" }, h("h1", null, h("bdi", null, details.name)), !details.enabled && h("span", { class: "state warn" }, icon("pause", 14), "Disabled"), h("div", { class: "buttons push" }, button(details.enabled ? "Disable" : "Enable", switched, { tone: details.enabled ? "" : "main" }))),
    details.note && h("p", { class: "notice" }, icon("alert"), h("span", null, details.note)),
  );
}

function aboutOf(details) {
  const git = details.status;
  const counts = Object.entries(details.counts).map(([state, count]) => h("li", null, `${number(count)} ${(STATES[state]?.[0] ?? state).toLowerCase()}`));
  return section(
    "Checkout",
    "checkout",
    facts([
      ["Git", gitWords(git)],
      ["Head", git.head && h("span", { class: "mono" }, git.head.slice(0, 12))],
      ["Upstream", git.upstream && h("bdi", { class: "mono" }, git.upstream)],
      ["Looked at", git.observed_at && since(git.observed_at)],
      ["Folder", h("bdi", { class: "mono" }, details.path)],
      ["Jobs", counts.length > 0 && h("ul", { class: "plain-list" }, counts)],
      ["Brought along", details.trust && details.trust.state !== "none" && h("bdi", null, details.trust.says)],
      ["Last dispatch", details.last_dispatch && [since(details.last_dispatch), `, fence ${number(details.fence)}`]],
      ["Held now", details.leases.map((lease) => h("div", null, jobLink(lease.job), " ", h("bdi", { class: "mono" }, lease.claims.join("  "))))],
      ["Needs a look", details.attention_jobs.map((job) => h("div", null, jobLink(job.id), " ", job.finished_at && since(job.finished_at)))],
      ["Added", since(details.added_at)],
    ]),
  );
}

function treesOf(worktrees) {
  if (worktrees.length === 0) return h("div");
  const entries = worktrees.map((each) =>
    h("li", { class: "tree" }, jobLink(each.id), " ", h("bdi", { class: "mono" }, each.branch), h("div", { class: "row-sub" }, [each.state, each.kept && "kept", each.size !== null && bytes(each.size), each.reason].filter(Boolean).join(" · "))),
  );
  return section("Worktrees", "worktrees", h("ul", { class: "plain-list" }, entries));
}
