// One job: how it is and why, what it printed, what it changed, what happened to it.

import { ask, get, page, route } from "/assets/api.js";
import { jobActions } from "/assets/actions.js";
import { artifactsOf } from "/assets/artifacts.js";
import { Diff } from "/assets/diff.js";
import { fill, h, part } from "/assets/dom.js";
import { attemptsOf, historyOf } from "/assets/history.js";
import { Log } from "/assets/log.js";
import { facts, jobLink, repositoryLink, section, state, title } from "/assets/parts.js";
import { bytes, command, cut, number, span, tail, word } from "/assets/text.js";
import { elapsed, since } from "/assets/time.js";
import { ENDED, RUNNING, stateOf } from "/assets/words.js";

/** Events of a job that its history shows; a job that has more shows the newest. */
const EVENTS = 500;

export function job({ root, parts: [selector], signal, refresh, go, named, say }) {
  const head = h("div");
  const why = h("div", { class: "why" });
  const about = h("div");
  const story = h("div");
  const left = h("div");
  const log = new Log(signal);
  const diff = new Diff(signal);
  const place = h("div", null, log.element, diff.element, left);
  fill(root, head, why, h("div", { class: "columns job" }, place, h("div", null, about, story)));
  let before = null;

  async function load() {
    const view = await get(["jobs", selector], {}, signal);
    const { id } = view;
    const [explained, events] = await Promise.all([
      get(["jobs", id, "why"], {}, signal),
      happenings(id, signal),
    ]);
    named(view.name ?? cut(command(view.argv), 60));
    if (before !== null && before !== view.state) say(`Job ${tail(id)}: ${stateOf(view)[0]}`);
    before = view.state;
    part(head, "head", [view.state, view.paused, view.waiting?.kind, view.waiting?.detail, view.attempt], () => headOf(view, refresh, go));
    part(why, "why", explained.sentence, whyOf);
    const { waiting: _, ...rest } = view;
    part(about, "about", rest, () => aboutOf(view));
    part(story, "story", [events.length, events.at(-1)?.seq], () => h("div", null, attemptsOf(events, view), historyOf(events)));
    part(left, "left", view.artifacts, () => artifactsOf(view));
    log.show(view);
    diff.show(view);
  }

  return {
    load,
    key: (key) => log.key(key),
    concerns: (happened) => happened.some((each) => selector.endsWith(tail(each.job ?? "-")) || each.job?.startsWith(selector) || each.job?.endsWith(selector) || before === null || !ENDED.includes(before)),
  };
}

async function happenings(id, signal) {
  const address = route(["events"], { job: id, newest: 1, limit: EVENTS });
  const text = await (await ask("GET", address, { signal })).text();
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/** A sentence that says more than the state does. */
function whyOf(text) {
  return /^It is \w+\.$/.test(text) ? h("p", { hidden: true }) : h("p", null, h("bdi", null, text));
}

function headOf(view, refresh, go) {
  const time = RUNNING.includes(view.state) ? h("span", { class: "soft" }, "for ", elapsed(view.started_at ?? view.queued_at)) : ENDED.includes(view.state) ? h("span", { class: "soft" }, since(view.finished_at)) : h("span", { class: "soft" }, "since ", since(view.queued_at));
  return h(
    "div",
    null,
    h("p", { class: "crumbs" }, h("a", { href: "/jobs" }, "Jobs"), " / ", repositoryLink(view.repo), " / ", h("span", { class: "mono", title: view.id }, tail(view.id))),
    h("div", { class: "head job-head" }, h("h1", null, title(view)), h("div", { class: "buttons push" }, jobActions(view, refresh, go))),
    h("p", { class: "job-state" }, state(view), time, view.attempt > 1 && h("span", { class: "soft" }, `attempt ${view.attempt} of ${view.max_attempts}`)),
  );
}

function aboutOf(view) {
  const { usage, agent, worktree, verify, effects } = view;
  const budgets = Object.entries(view.budgets).map(([name, seconds]) => `${name} ${span(seconds)}`);
  return section(
    "About",
    "about",
    facts([
      ["Command", h("div", { class: "argv" }, view.argv.map((each) => h("code", null, h("bdi", null, cut(word(each), 2000)))))],
      ["Job", h("span", { class: "mono all" }, view.id)],
      ["Kind", view.kind],
      ["Priority", view.priority],
      ["Folder", view.cwd && h("bdi", { class: "mono" }, view.cwd)],
      ["Provider", view.provider],
      ["Agent", agent && [agent.name, agent.version && ` ${agent.version}`]],
      ["Session", agent?.session && h("bdi", { class: "mono" }, agent.session)],
      ["Agent used", agent?.usage && usedBy(agent.usage)],
      ["Goes on with", agent?.continues && jobLink(agent.continues)],
      ["Check", verify && [h("code", null, h("bdi", null, cut(verify.command, 300))), ` ${verify.step}, round ${verify.round} of ${verify.rounds}`]],
      ["Effects", effects && effectsOf(effects)],
      ["Worktree", worktree?.path && h("bdi", { class: "mono" }, worktree.path)],
      ["Branch", worktree?.branch && h("bdi", { class: "mono" }, worktree.branch)],
      ["Error", view.error && [h("b", null, view.error.code), " ", h("bdi", null, cut(view.error.message, 1000))]],
      ["Exit status", view.exit_code],
      ["Signal", view.signal && `${view.signal}${view.forced ? ", by force" : ""}`],
      ["Problem", view.problem && h("bdi", null, view.problem)],
      ["Created", since(view.created_at)],
      ["Started", since(view.started_at)],
      ["Finished", since(view.finished_at)],
      ["Took", view.duration !== null && span(view.duration)],
      ["Stood still", view.paused_seconds && span(view.paused_seconds)],
      ["Processor", usage.user_seconds !== undefined && `${span(usage.user_seconds + usage.system_seconds)}, most memory ${bytes(usage.max_rss_kib * 1024)}`],
      ["Process", view.pid && String(view.pid)],
      ["Fence", view.fence && number(view.fence)],
      ["Claims", view.claims.map((claim) => h("div", null, h("bdi", { class: "mono" }, claim)))],
      ["Runs after", view.after.map((id) => h("div", null, jobLink(id)))],
      ["Takes files of", view.inputs.map((each) => h("div", null, h("bdi", { class: "mono" }, each)))],
      ["Hands on", view.outputs && Object.entries(view.outputs).map(([name, text]) => h("div", null, h("bdi", { class: "mono" }, `${name}=${cut(text, 300)}`)))],
      ["Wrong with that", view.outputs_problem && h("bdi", null, view.outputs_problem)],
      ["Retry of", view.retry_of && jobLink(view.retry_of)],
      ["Labels", view.labels.map((label) => h("a", { class: "label", href: `/jobs?label=${encodeURIComponent(label)}` }, h("bdi", null, label)))],
      ["Budgets", budgets.join(", ")],
      ["Attempts", `${number(view.attempt)} of ${number(view.max_attempts)}, replay ${view.replay}`],
      ["Secrets", view.secrets.join(", ")],
      ["Left behind", view.leftovers.map((each) => h("div", null, h("bdi", { class: "mono" }, each)))],
      ["After it", view.after_job && h("bdi", null, view.after_job.error ?? `exit status ${view.after_job.exit_code ?? "unknown"}`)],
      ["Origin", view.origin && h("bdi", null, view.origin)],
      ["Work", view.work && workOf(view)],
      ["Request", view.request_id && h("bdi", { class: "mono" }, view.request_id)],
    ]),
  );
}

function workOf(view) {
  const work = h("bdi", { class: "mono" }, view.work);
  return view.origin === `epic:${view.work}` ? h("a", { href: page("epics", view.work) }, work) : work;
}

function effectsOf({ began, declared = [], authorised = [], held_back: held = [], refused = [] }) {
  const lines = [
    began && `begun by ${began}`,
    declared.length && `declared: ${declared.join(", ")}`,
    authorised.length && `allowed: ${authorised.join(", ")}`,
    held.length && `waits to be allowed: ${held.join(", ")}`,
    ...refused.slice(0, 10).map((each) => `was kept from ${each}`),
  ];
  return lines.filter(Boolean).map((line) => h("div", null, h("bdi", null, cut(line, 200))));
}

function usedBy(used) {
  const words = [
    used.input_tokens !== undefined && `${number(used.input_tokens)} tokens in`,
    used.output_tokens !== undefined && `${number(used.output_tokens)} out`,
    used.cost !== undefined && `$${used.cost.toFixed(2)}`,
  ];
  return words.filter(Boolean).join(", ");
}
