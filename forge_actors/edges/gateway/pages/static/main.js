// Which page is shown, how one gets to another, and the keyboard.

import { get, page, post } from "/assets/api.js";
import { note, say, show } from "/assets/dialog.js";
import { fill, h } from "/assets/dom.js";
import { epic, epics } from "/assets/epics.js";
import { health } from "/assets/health.js";
import { job } from "/assets/job.js";
import { jobs } from "/assets/jobs.js";
import { Live } from "/assets/live.js";
import { overview } from "/assets/overview.js";
import { repositories, repository } from "/assets/repositories.js";
import { schedule, schedules } from "/assets/schedules.js";
import { visible } from "/assets/text.js";
import { startClock } from "/assets/time.js";
import { timeline } from "/assets/timeline.js";
import { usage } from "/assets/usage.js";
import { workflow, workflows } from "/assets/workflows.js";

const NAV = [
  ["Overview", "/", "o"],
  ["Jobs", "/jobs", "j"],
  ["Repositories", "/repositories", "r"],
  ["Workflows", "/workflows", "w"],
  ["EPICs", "/epics", "e"],
  ["Schedules", "/schedules", "s"],
  ["Timeline", "/timeline", "t"],
  ["Usage", "/usage", "u"],
  ["Health", "/health", "h"],
];
const PAGES = [
  [/^\/$/, overview],
  [/^\/jobs$/, jobs],
  [/^\/jobs\/([^/]+)$/, job],
  [/^\/repositories$/, repositories],
  [/^\/repositories\/([^/]+)$/, repository],
  [/^\/workflows$/, workflows],
  [/^\/workflows\/([^/]+)$/, workflow],
  [/^\/epics$/, epics],
  [/^\/epics\/([^/]+)$/, epic],
  [/^\/schedules$/, schedules],
  [/^\/schedules\/([^/]+)$/, schedule],
  [/^\/timeline$/, timeline],
  [/^\/usage$/, usage],
  [/^\/health$/, health],
];
/** Milliseconds that what happens is gathered for before the page is told, unless it
 * wants another pause; and how often as long as loading it took. */
const GATHER = 400;
const REST = 3;

const main = document.getElementById("main");
let shown = null;
let events = [];
let missed = false;
let took = 0;
let gathering = null;

function open({ keepFocus = false } = {}) {
  shown?.leaving.abort();
  const found = PAGES.map(([path, make]) => [path.exec(location.pathname), make]).find(([match]) => match);
  const leaving = new AbortController();
  const root = h("div", { class: "page" });
  fill(main, root);
  mark();
  shown = { leaving, page: null, busy: false, again: false };
  if (found === undefined) {
    missing(root);
    return;
  }
  const [match, make] = found;
  const context = {
    root,
    signal: leaving.signal,
    parts: match.slice(1).map(decodeURIComponent),
    query: new URLSearchParams(location.search),
    go,
    say,
    refresh,
    named: (text) => (document.title = text ? `${visible(text)} · Forge Actors` : "Forge Actors"),
  };
  context.named("");
  shown.page = make(context);
  refresh();
  if (!keepFocus) main.focus({ preventScroll: true });
}

/** Load what the page shows again; while it loads, once more afterwards. */
async function refresh() {
  const mine = shown;
  if (!mine?.page || out()) return;
  if (mine.busy) {
    mine.again = true;
    return;
  }
  busy(mine, true);
  const began = performance.now();
  try {
    await mine.page.load();
  } catch (error) {
    if (!mine.leaving.signal.aborted && error.status !== 401) mine.page.failed?.(error) ?? failed(error);
  } finally {
    took = performance.now() - began;
    busy(mine, false);
  }
  if (mine.again && mine === shown) {
    mine.again = false;
    refresh();
  }
}

function busy(mine, is) {
  mine.busy = is;
  if (mine === shown) document.body.dataset.busy = is ? "1" : "0";
}

function failed(error) {
  if (error.status === 404) missing(main.firstElementChild, error.message);
  else if (error.status !== 0) note(error.message, "bad");
}

function missing(root, text = `There is no page at ${location.pathname}.`) {
  fill(root, h("div", { class: "empty big" }, h("h1", null, "Not found"), h("p", null, text), h("p", null, h("a", { href: "/" }, "To the overview"))));
}

function go(address, { replace = false } = {}) {
  const keepFocus = replace;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  open({ keepFocus });
  if (!replace) scrollTo(0, 0);
}

function mark() {
  const links = NAV.map(([text, address]) => {
    const here = address === "/" ? location.pathname === "/" : location.pathname.startsWith(address);
    return h("a", { href: address, "aria-current": here ? "page" : null }, text);
  });
  const nav = document.getElementById("nav");
  fill(nav, links);
  // On a narrow screen the bar is wider than the page: the place where one is is seen.
  const here = links.find((link) => link.hasAttribute("aria-current"));
  if (here) nav.scrollLeft = here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;
}

// What happens

const live = new Live((told) => {
  if (told) events.push(...told);
  else missed = true;
  if (gathering !== null) return;
  gathering = setTimeout(() => {
    gathering = null;
    const [happened, all] = [events, missed];
    [events, missed] = [[], false];
    if (all || (shown?.page?.concerns?.(happened) ?? true)) refresh();
  }, Math.max(shown?.page?.pause ?? GATHER, REST * took));
}, linked);

const LINK = {
  live: ["Live", "What happens is shown as it happens"],
  waiting: ["Reconnecting…", "The service does not answer; this page shows what it was"],
  asleep: ["", ""],
  out: ["Logged out", "forge-actors open logs in"],
};

function linked(state) {
  const [text, title] = LINK[state];
  const link = document.getElementById("link");
  link.className = `link ${state}`;
  fill(link, text && h("span", { title }, text));
  if (state === "out") loggedOut();
}

function out() {
  return document.body.classList.contains("out");
}

function loggedOut() {
  document.body.classList.add("out");
  shown?.leaving.abort();
  fill(
    main,
    h(
      "div",
      { class: "empty big" },
      h("h1", null, "You are logged out"),
      h("p", null, "A link from the command line lets this browser in again:"),
      h("pre", { class: "command" }, "forge-actors open"),
      h("p", null, "On another machine, ", h("code", null, "forge-actors open --print"), " prints the link."),
    ),
  );
}

document.getElementById("leave").addEventListener("click", async () => {
  try {
    await post(["logout"]);
    document.dispatchEvent(new Event("forge:login"));
  } catch (error) {
    note(error.message, "bad");
  }
});
document.addEventListener("forge:login", () => {
  live.stop();
  live.tell("out");
});

// Ways through the pages

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const link = event.target.closest?.("a[href]");
  if (!link || link.hasAttribute("download") || link.target || out()) return;
  const address = link.getAttribute("href");
  if (!address.startsWith("/") || address.startsWith("/v1/") || address.startsWith("/assets/")) return;
  event.preventDefault();
  go(address);
});
addEventListener("popstate", () => open());

const find = document.getElementById("find-text");
document.getElementById("find").addEventListener("submit", async (event) => {
  event.preventDefault();
  const wanted = find.value.trim();
  if (!wanted) return;
  try {
    const found = await get(["jobs", wanted]);
    find.value = "";
    find.blur();
    go(page("jobs", found.id));
  } catch (error) {
    note(error.message, "bad");
  }
});

function step(by) {
  const all = [...main.querySelectorAll("[data-row]")];
  if (all.length === 0) return;
  const here = all.indexOf(document.activeElement);
  const next = all[here < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, here + by))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

const KEYS = [
  ["j  k", "the next, the previous row"],
  ["Enter", "open it"],
  ["/", "find a job by its id; on the page of a job, search its output"],
  ["g  o j r w e s t u h", "overview, jobs, repositories, workflows, EPICs, schedules, timeline, usage, health"],
  ["f", "follow the output, or stop following"],
  ["Esc", "leave a field, close a question"],
  ["?", "these keys"],
];

function help() {
  if (document.querySelector("dialog[open]")) return;
  show("Keyboard", h("dl", { class: "keys" }, KEYS.map(([keys, text]) => h("div", null, h("dt", null, keys.split("  ").map((key) => h("kbd", null, key))), h("dd", null, text)))));
}
document.getElementById("keys").addEventListener("click", help);

let pressed = "";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.matches("input,textarea,select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  const before = pressed;
  pressed = event.key;
  if (before === "g") {
    pressed = "";
    const to = NAV.find(([, , key]) => key === event.key);
    if (to) go(to[1]);
    return;
  }
  if (shown?.page?.key?.(event.key)) event.preventDefault();
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "?") help();
  else if (event.key === "/") {
    event.preventDefault();
    find.focus();
    find.select();
  }
});

async function name() {
  try {
    const { service } = await get(["status"]);
    fill(document.getElementById("service"), `Forge Actors ${service.version} · process ${service.pid}`);
  } catch {
    // The page itself says what is wrong.
  }
}

startClock();
open({ keepFocus: true });
live.look();
name();
