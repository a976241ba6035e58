// What ran when: a row for each attempt that ran beside others, by repository or by token.

import { get, page } from "/assets/api.js";
import { Chart } from "/assets/chart.js";
import { fill, h, part } from "/assets/dom.js";
import { icon } from "/assets/icons.js";
import { empty, jobLink, repositoryLink } from "/assets/parts.js";
import { cut, number, plural, span } from "/assets/text.js";
import { STATES } from "/assets/words.js";

const SINCE = { "15m": "15 min", "1h": "1 hour", "6h": "6 hours", "1d": "1 day", "7d": "7 days" };
const BY = { repo: "By repository", token: "By token" };
/** Attempts that are drawn at most. */
const MOST = 1000;
const BANDS = { down: "The service was down", pressure: "Pressure", drain: "Drain", pause: "Pause", closed: "Provider closed", policy: "Policy" };

export function timeline({ root, query, signal, go, named }) {
  named("Timeline");
  const since = query.get("since") in SINCE ? query.get("since") : "1h";
  const by = query.get("by") in BY ? query.get("by") : "repo";
  const repo = query.get("repo");
  const address = (name, value) => {
    const next = new URLSearchParams(query);
    next.set(name, value);
    return `/timeline?${next}`;
  };
  const tabs = (all, name, here, label) => h("nav", { class: "tabs", "aria-label": label }, Object.entries(all).map(([key, text]) => h("a", { href: address(name, key), "aria-current": key === here ? "true" : null }, text)));
  const told = h("p", { class: "picked", role: "status" });
  const chart = new Chart({ open: (run) => go(page("jobs", run.job)), pick: (run) => fill(told, picked(run)), signal });
  const summary = h("p", { class: "soft" });
  const nothing = h("div");
  const bands = h("div");
  fill(
    root,
    h("div", { class: "head" }, h("h1", null, "Timeline"), repo && h("span", { class: "soft" }, h("bdi", null, repo), " ", h("a", { href: "/timeline" }, "all"))),
    h("div", { class: "filters" }, tabs(SINCE, "since", since, "How far back"), tabs(BY, "by", by, "Rows")),
    legend(),
    summary,
    h("div", { class: "chart" }, chart.element),
    told,
    nothing,
    bands,
  );

  async function load() {
    const found = await get(["timeline"], { since, repo, limit: MOST }, signal);
    fill(summary, summed(found));
    part(nothing, "nothing", found.runs.length === 0, (none) => (none ? empty("Nothing ran in this time. What runs is drawn here:", "forge-actors submit --kind check -- make test") : h("div")));
    if (!told.hasChildNodes() && found.runs.length) fill(told, h("span", { class: "soft" }, "Point at a bar, or go through them with j and k."));
    part(bands, "bands", found.bands, () => bandsOf(found));
    chart.show(found, by);
  }

  return { load, concerns: (happened) => happened.some((each) => DRAWN.has(each.kind)), pause: 2000 };
}

/** What changes the picture; that a job is accepted only lengthens its wait. */
const DRAWN = new Set(
  ["running", "succeeded", "failed", "timed_out", "cancelled", "orphaned", "human_attention_required", "waiting_for_retry", "paused", "resumed"]
    .map((state) => `job_${state}`)
    .concat("pressure_began", "pressure_ended", "drain_began", "drain_ended", "paused", "resumed", "provider_closed", "provider_opened", "policy_changed"),
);

function summed(found) {
  const words = [`${plural(found.runs.length, "attempt")} in ${span(found.seconds)}`];
  const left = found.runs_left_out + found.waits_left_out;
  if (found.runs_left_out) words.push(`${number(left)} more are not drawn: forge-actors timeline --html FILE draws them`);
  if (found.complete_from > 1) words.push(`all of it is known for the last ${span(found.seconds - found.complete_from)}`);
  return words.join("; ");
}

function legend() {
  const entry = (tone, text) => h("li", null, h("span", { class: `swatch ${tone}` }), text);
  return h("ul", { class: "legend", "aria-label": "What the bars mean" }, entry("run", "running"), entry("good", "succeeded"), entry("bad", "failed"), entry("calm", "cancelled or tried again"), entry("warn", "needs a person"), entry("waited", "waited"));
}

function picked(run) {
  if (!run) return null;
  const [word] = run.ended === null ? STATES.running : (STATES[run.outcome] ?? [run.outcome ?? "unknown"]);
  const lasted = run.began === null || run.ended === null ? null : span(run.ended - run.began);
  const rest = [
    `attempt ${run.attempt}`,
    word.toLowerCase() + (run.error ? ` (${run.error})` : ""),
    lasted && `took ${lasted}`,
    run.waited > 0 && `waited ${span(run.waited)}`,
    run.tokens.length && run.tokens.join(", "),
  ];
  return [repositoryLink(run.repo), " ", jobLink(run.job), " ", run.name && h("bdi", { class: "name" }, cut(run.name, 120), " "), h("span", { class: "soft" }, rest.filter(Boolean).join(" · "))];
}

function bandsOf({ bands }) {
  if (bands.length === 0) return h("div");
  const entries = bands.slice(-50).map((band) => h("li", null, icon("alert", 14), " ", BANDS[band.kind] ?? band.kind, band.repo && [" of ", h("bdi", null, band.repo)], band.reason && `: ${cut(band.reason, 200)}`, band.ended !== null && `, ${span(band.ended - Math.max(0, band.began))}`));
  return h("section", { class: "block", "aria-labelledby": "bands" }, h("h2", { id: "bands" }, "What held for many jobs"), h("ul", { class: "plain-list" }, entries));
}
