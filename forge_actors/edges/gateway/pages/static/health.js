// Whether the service is well, and what it stands on.

import { get, page } from "/assets/api.js";
import { fill, h, part } from "/assets/dom.js";
import { icon } from "/assets/icons.js";
import { empty, facts, jobLink, meter, section } from "/assets/parts.js";
import { bytes, clock, number, plural } from "/assets/text.js";
import { elapsed, since } from "/assets/time.js";

const ANSWERS = {
  pass: ["holds", "check", "good"],
  fail: ["does not hold", "cross", "bad"],
  not_observed: ["not looked at", "dash", "calm"],
};
const QUESTIONS = {
  execution: "Jobs may be started",
  maintenance: "The clean-up does its work",
  database: "The store can be written",
  scheduler: "Jobs are dispatched",
  releaseCoherence: "The release is the active one",
  endToEnd: "Clients are answered",
  mcpEndToEnd: "Tools answer from end to end",
};

export function health({ root, signal, named }) {
  named("Health");
  const blocks = ["state", "disk", "upkeep", "agents", "kept", "limits"].map((id) => h("div", { data: { block: id } }));
  const [state, disk, upkeep, agents, kept, limits] = blocks;
  fill(root, h("h1", { class: "hidden" }, "Health"), state, h("div", { class: "columns even" }, h("div", null, disk, kept), h("div", null, upkeep, limits)), agents);

  async function load() {
    const status = await get(["status"], {}, signal);
    part(state, "state", [status.ready, checksOf(status), status.degraded, status.draining, status.service], () => stateOf(status));
    part(disk, "disk", status.disk ?? null, () => diskOf(status.disk));
    part(upkeep, "upkeep", status.maintenance ?? null, () => upkeepOf(status.maintenance));
    part(kept, "kept", [status.quarantined, status.poisoned], () => keptOf(status));
    part(limits, "limits", [status.open_files, status.pressure, status.store, status.repositories, status.mcp], () => limitsOf(status));
    part(agents, "agents", status.agents, () => agentsOf(status.agents));
  }

  return { load };
}

function stateOf(status) {
  const [word, shape, tone] = status.draining ? ["Draining", "pause", "warn"] : status.ready ? ["Ready", "check", "good"] : ["Not ready", "alert", "bad"];
  const { service } = status;
  return h(
    "section",
    { class: "block", "aria-labelledby": "ready" },
    h("div", { class: "head" }, h("h2", { id: "ready", class: `big-state ${tone}` }, icon(shape, 22), word), h("span", { class: "soft push" }, "up for ", elapsed(service.started_at))),
    status.degraded.map((text) => h("p", { class: "notice" }, icon("alert"), h("span", null, text))),
    h("ul", { class: "checks" }, Object.entries(checksOf(status)).map(([key, told]) => check(key, told))),
    h(
      "details",
      null,
      h("summary", null, "This service"),
      facts([
        ["Version", service.version],
        ["Release", service.release && h("bdi", { class: "mono" }, service.release.id)],
        ["Process", number(service.pid).replaceAll(",", "")],
        ["Agent process", service.agent_pid && String(service.agent_pid)],
        ["Address", service.endpoint],
        ["Home", h("bdi", { class: "mono" }, service.home)],
        ["Installation", h("span", { class: "mono" }, service.installation)],
        ["Instance", h("span", { class: "mono" }, service.instance)],
        ["Epoch", String(service.epoch)],
      ]),
    ),
  );
}

/** What is asked of a service, and each answer: those of it as a whole come first. */
function checksOf(status) {
  const whole = { execution: status.execution_ready, maintenance: status.maintenance_healthy };
  const told = Object.entries(whole).map(([key, yes]) => [key, yes ? "pass" : "fail"]);
  return { ...Object.fromEntries(told), ...status.readiness };
}

function check(key, told) {
  const [word, shape, tone] = ANSWERS[told] ?? [told, "unknown", "warn"];
  return h("li", { class: `check ${tone}` }, icon(shape), h("span", null, QUESTIONS[key] ?? key), h("span", { class: "soft" }, word));
}

function diskOf(disk) {
  if (!disk || !disk.total) return h("div");
  const words = { ok: ["", ""], low: ["full", "Little room is left."], full: ["closed", "No room is left: no new job is taken."] };
  const [tone, note] = words[disk.state] ?? ["", disk.state];
  const classes = Object.entries(disk.home?.classes ?? {}).filter(([, size]) => size > 0).sort((one, other) => other[1] - one[1]);
  return section(
    "Disk",
    "disk",
    meter("Used", disk.total - disk.free, disk.total, { unit: bytes, tone, note }),
    facts([
      ["Free", bytes(disk.free)],
      ["Warned below", bytes(disk.warn_free)],
      ["Refused below", bytes(disk.refuse_free)],
      ["This home", disk.home?.bytes ? bytes(disk.home.bytes) : null],
      ["Of which", classes.map(([name, size]) => h("div", null, `${name.replaceAll("_", " ")} ${bytes(size)}`))],
      ["Problem", disk.problem],
    ]),
  );
}

function upkeepOf(upkeep) {
  if (!upkeep) return h("div");
  const { last } = upkeep;
  return section(
    "Clean-up",
    "clean-up",
    upkeep.problem && h("p", { class: "notice" }, icon("alert"), h("span", null, upkeep.problem)),
    facts([
      ["Runs", upkeep.enabled ? `at most every ${clock(upkeep.period)}` : "disabled"],
      ["Until now", plural(upkeep.runs, "run")],
      ["Last", last ? since(last.ended_at ?? last.began_at) : "nothing had ended yet"],
      ["Its error", last?.error],
      ["Removed", upkeep.removed ? `${number(upkeep.removed)}, ${bytes(upkeep.bytes ?? 0)}` : null],
    ]),
  );
}

function keptOf({ quarantined, poisoned }) {
  if (quarantined.length + poisoned.length === 0) return h("div");
  return h(
    "div",
    null,
    quarantined.length > 0 &&
      section("Claims that are kept", "quarantine", h("ul", { class: "plain-list" }, quarantined.map((each) => h("li", null, jobLink(each.job), " ", h("bdi", null, each.repo), " ", since(each.since), h("div", { class: "row-sub" }, each.reason))))),
    poisoned.length > 0 &&
      section("Set aside", "aside", h("ul", { class: "plain-list" }, poisoned.map((each) => h("li", null, h("a", { href: page("repositories", each.repo) }, h("bdi", null, each.repo)), " ", since(each.since), h("div", { class: "row-sub" }, each.error))))),
  );
}

function limitsOf(status) {
  const files = status.open_files;
  return section(
    "Limits",
    "limits",
    facts([
      ["Pressure", status.pressure?.active ? status.pressure.reason : "none"],
      ["Open files", files?.limit && number(files.limit)],
      ["Short of", files?.short_of?.length ? files.short_of.join(", ") : null],
      ["Repositories", `${number(status.repositories.known)} known, ${number(status.repositories.awake)} awake`],
      ["Tools for agents", status.mcp && toolsOf(status.mcp)],
      ["Events", number(status.store.last_event)],
      ["Store", `synchronous ${status.store.synchronous.toLowerCase()}`],
    ]),
  );
}

function toolsOf(mcp) {
  if (!mcp.available) return mcp.note;
  return `${number(mcp.tools)}, ${number(mcp.sessions.used)} of ${plural(mcp.sessions.limit, "session")}`;
}

function agentsOf(agents) {
  if (!agents?.length) return section("Agents", "agents", empty("No agent program is set up. doctor says what it looks for:", "forge-actors doctor"));
  const entries = agents.map((each) => {
    const [word, shape, tone] = !each.path ? ["not found", "cross", "calm"] : each.logged_in === false ? ["not logged in", "lock", "warn"] : ["found", "check", "good"];
    return h(
      "li",
      { class: "card" },
      h("div", { class: "card-head" }, h("b", null, each.name), h("span", { class: "soft" }, each.provider), h("span", { class: `state ${tone} push` }, icon(shape, 14), word)),
      h("p", { class: "row-sub mono" }, h("bdi", null, [each.version, each.path].filter(Boolean).join(" · "))),
      each.detail && h("details", null, h("summary", null, "More"), h("p", { class: "soft" }, h("bdi", null, each.detail))),
    );
  });
  return section("Agents", "agents", h("ul", { class: "cards" }, entries));
}
