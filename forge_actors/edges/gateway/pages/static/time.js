// Times that go on while one looks. Their clock runs only while the page is seen and
// has one of them.

import { h } from "/assets/dom.js";
import { ago, clock, exact } from "/assets/text.js";

/** How long ago something was; the moment itself is its title. */
export function since(moment) {
  if (!moment) return null;
  return h("time", { datetime: moment, title: exact(moment), data: { ago: moment } }, ago(moment));
}

/** How long something has been going on. */
export function elapsed(moment) {
  if (!moment) return null;
  const made = h("time", { datetime: moment, title: `since ${exact(moment)}`, data: { from: moment } });
  made.textContent = told(moment, Date.now());
  return made;
}

const told = (moment, now) => clock((now - Date.parse(moment)) / 1000);

function advance() {
  const now = Date.now();
  for (const each of document.querySelectorAll("time[data-from]")) {
    write(each, told(each.dataset.from, now));
  }
  for (const each of document.querySelectorAll("time[data-ago]")) {
    write(each, ago(each.dataset.ago, now));
  }
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

let timer = null;

function wind() {
  clearInterval(timer);
  timer = null;
  if (document.hidden) return;
  advance();
  timer = setInterval(advance, 1000);
}

/** Have times go on from now. */
export function startClock() {
  document.addEventListener("visibilitychange", wind);
  wind();
}
