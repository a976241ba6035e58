// What agents used, added up in the way that is chosen.

import { get, page } from "/assets/api.js";
import { fill, h, part } from "/assets/dom.js";
import { bar, empty } from "/assets/parts.js";
import { number, short } from "/assets/text.js";

const BY = { day: "By day", repo: "By repository", provider: "By provider", agent: "By agent", job: "By job" };
const SINCE = { "": "All that is kept", "1d": "The last day", "7d": "The last 7 days", "30d": "The last 30 days" };
const MOST = 200;

export function usage({ root, query, signal, go, named }) {
  named("Usage");
  const by = query.get("by") in BY ? query.get("by") : "day";
  const from = query.get("since") in SINCE ? query.get("since") : "";
  const address = (name, value) => {
    const next = new URLSearchParams(query);
    if (value) next.set(name, value);
    else next.delete(name);
    return next.size ? `/usage?${next}` : "/usage";
  };
  const tabs = Object.entries(BY).map(([key, text]) => h("a", { href: address("by", key), "aria-current": key === by ? "true" : null }, text));
  const spans = h("select", { id: "since", on: { change: () => go(address("since", spans.value)) } }, Object.entries(SINCE).map(([key, text]) => h("option", { value: key, selected: key === from }, text)));
  const report = h("div");
  fill(root, h("div", { class: "head" }, h("h1", null, "Usage of agents")), h("div", { class: "filters" }, h("nav", { class: "tabs", "aria-label": "Added up by" }, tabs), h("div", { class: "selects" }, h("label", { class: "hidden", for: "since" }, "Since"), spans)), report);

  async function load() {
    const found = await get(["usage"], { by, since: from }, signal);
    part(report, "report", found, () => (found.total.attempts ? table(found) : empty("No agent has run in this time. What agents use is added up here once one has:", "forge-actors submit --agent claude --prompt-file task.md")));
  }

  return { load, concerns: (happened) => happened.some((each) => each.kind.startsWith("job_")) };
}

function table({ by, groups, total }) {
  const measure = groups.some((each) => each.cost) ? "cost" : "input_tokens";
  const most = Math.max(...groups.map((each) => each[measure] ?? 0));
  const head = ["", "Attempts", "Input", "Output", "Cached", "Cost"];
  const line = (each, name, shape) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, name, shape),
      h("td", { data: { name: "Attempts" } }, number(each.attempts)),
      ["input_tokens", "output_tokens", "cached_tokens"].map((key, place) => h("td", { title: each[key] === null ? null : number(each[key]), data: { name: head[place + 2] } }, amount(each, key, short))),
      h("td", { data: { name: "Cost" } }, amount(each, "cost", dollars)),
    );
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "sums" },
      h("thead", null, h("tr", null, head.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", null, groups.slice(0, MOST).map((each) => line(each, nameOf(by, each.key), bar(each[measure] ?? 0, most)))),
      h("tfoot", null, line(total, "Together", null)),
    ),
    groups.length > MOST && h("p", { class: "more" }, `${number(groups.length - MOST)} more: `, h("code", null, `forge-actors usage --by ${by}`)),
  );
}

function nameOf(by, key) {
  if (key === null) return h("span", { class: "soft" }, "none");
  if (by === "job") return h("a", { class: "mono", href: page("jobs", key) }, key);
  if (by === "repo") return h("a", { href: page("repositories", key) }, h("bdi", null, key));
  return h("bdi", null, key);
}

/** What is known, and whether there was more. */
function amount(sum, key, told) {
  if (sum[key] === null || sum[key] === undefined) return h("span", { class: "soft", title: "Nobody told" }, "–");
  const unknown = sum.unknown?.[key];
  return unknown ? h("span", { title: `of ${unknown} attempts it is not known` }, `≥ ${told(sum[key])}`) : told(sum[key]);
}

const dollars = (value) => `$${value < 1 && value > 0 ? value.toFixed(3) : value.toFixed(2)}`;
