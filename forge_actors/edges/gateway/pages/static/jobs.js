// The list of jobs: filters in the address, one page of rows at a time.

import { get } from "/assets/api.js";
import { fill, h, keyed, part } from "/assets/dom.js";
import { empty, jobRow, rows } from "/assets/parts.js";
import { number } from "/assets/text.js";
import { ENDED, KINDS, RUNNING, STATES, WAITING } from "/assets/words.js";

const PAGE = 50;
const SHOWS = {
  "": ["All", {}],
  active: ["Active", { active: 1 }],
  running: ["Running", { state: RUNNING }],
  waiting: ["Waiting", { state: WAITING }],
  failed: ["Failed", { failed: 1 }],
  ended: ["Ended", { state: ENDED }],
};

export function jobs({ root, query, signal, go, named }) {
  named("Jobs");
  const repos = h("select", { id: "by-repo", name: "repo" });
  const list = rows("Jobs");
  const nothing = h("div");
  const pager = h("nav", { class: "pager", "aria-label": "Pages of the list" });
  const total = h("span", { class: "count" });
  fill(root, h("div", { class: "head" }, h("h1", null, "Jobs"), total), filters(query, repos, go), list, nothing, pager);

  async function load() {
    const wanted = wantedOf(query);
    const [answer, known] = await Promise.all([
      get(["jobs"], { ...wanted, limit: PAGE, before: query.get("before") }, signal),
      get(["repositories"], {}, signal),
    ]);
    choices(repos, known.repositories, query.get("repo"));
    keyed(list, answer.jobs, (job) => job.id, jobRow);
    const filtered = [...query.keys()].some((name) => name !== "before");
    part(nothing, "nothing", [answer.jobs.length === 0, filtered], ([none]) => (none ? nothingOf(filtered, query) : h("div")));
    part(pager, "pager", [answer.jobs.at(-1)?.id, answer.jobs.length], () => pages(query, answer.jobs));
    const { counts } = await get(["status"], {}, signal);
    fill(total, number(Object.values(counts).reduce((sum, each) => sum + each, 0)));
  }

  return {
    load,
    // A page of older ones stays as it is, but for the jobs that are on it.
    concerns: (happened) => !query.has("before") || happened.some((each) => list.querySelector(`[data-key="${CSS.escape(each.job ?? "")}"]`)),
  };
}

function nothingOf(filtered, query) {
  if (query.has("before")) return h("div", { class: "empty" }, h("p", null, "There are no older ones."));
  if (filtered) return h("div", { class: "empty" }, h("p", null, "No job is like that."), h("p", null, h("a", { href: "/jobs" }, "Show all jobs")));
  return empty("No job yet. Submit one, from a folder of a repository:", "forge-actors submit --kind check -- make test");
}

function wantedOf(query) {
  const wanted = { ...(SHOWS[query.get("show") ?? ""] ?? SHOWS[""])[1] };
  const states = query.getAll("state").filter((state) => state in STATES);
  if (states.length) wanted.state = states;
  for (const name of ["repo", "kind", "label"]) if (query.get(name)) wanted[name] = query.get(name);
  return wanted;
}

function addressOf(query) {
  const text = query.toString();
  return text ? `/jobs?${text}` : "/jobs";
}

function filters(query, repos, go) {
  const tabs = Object.entries(SHOWS).map(([show, [text]]) => {
    const next = new URLSearchParams(query);
    for (const name of ["show", "state", "before"]) next.delete(name);
    if (show) next.set("show", show);
    const here = !query.has("state") && (query.get("show") ?? "") === show;
    return h("a", { href: addressOf(next), "aria-current": here ? "true" : null }, text);
  });
  const changed = (name, value) => {
    const next = new URLSearchParams(query);
    next.delete("before");
    if (value) next.set(name, value);
    else next.delete(name);
    go(addressOf(next), { replace: false });
  };
  repos.addEventListener("change", () => changed("repo", repos.value));
  const state = select("by-state", "Any state", Object.entries(STATES).map(([each, [text]]) => [each, text]), query.get("state"), (value) => {
    query.delete("show");
    changed("state", value);
  });
  const kind = select("by-kind", "Any kind", KINDS.map((each) => [each, each]), query.get("kind"), (value) => changed("kind", value));
  const label = h("input", { id: "by-label", type: "text", placeholder: "Label", value: query.get("label") ?? "", maxlength: 200, autocomplete: "off", spellcheck: "false", on: { change: (event) => changed("label", event.target.value.trim()) } });
  return h(
    "div",
    { class: "filters" },
    h("nav", { class: "tabs", "aria-label": "Which jobs" }, tabs),
    h("div", { class: "selects" }, labelled("Repository", repos), labelled("State", state), labelled("Kind", kind), labelled("Label", label)),
  );
}

function labelled(text, control) {
  return [h("label", { class: "hidden", for: control.id }, text), control];
}

function select(id, any, options, chosen, changed) {
  const made = h("select", { id, on: { change: () => changed(made.value) } }, h("option", { value: "" }, any), options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
  return made;
}

function choices(repos, known, chosen) {
  if (document.activeElement === repos) return;
  const names = known.map((each) => each.name).sort();
  keyed(repos, ["", ...names], (name) => name, (name) => h("option", { value: name }, name || "Every repository"));
  repos.value = chosen ?? "";
}

function pages(query, jobs) {
  const links = [];
  if (query.has("before")) {
    const first = new URLSearchParams(query);
    first.delete("before");
    links.push(h("a", { class: "button", href: addressOf(first) }, "Newest"));
  }
  if (jobs.length === PAGE) {
    const older = new URLSearchParams(query);
    older.set("before", jobs.at(-1).id);
    links.push(h("a", { class: "button", href: addressOf(older) }, "Older"));
  }
  return h("div", { class: "buttons" }, links);
}
