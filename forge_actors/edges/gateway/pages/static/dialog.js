// Questions and messages of the pages themselves.

import { h } from "/assets/dom.js";
import { visible } from "/assets/text.js";

let told = 0;

/** Ask before something is done; what was typed, `""` without a field, null for no. */
export function confirm({ title, text, yes, tone = "", field = null, required = false }) {
  const area = field && h("textarea", { id: "dialog-text", rows: 4, maxlength: 60000, spellcheck: "true" });
  const agree = h("button", { class: `button main ${tone}`, value: "yes" }, yes);
  const box = h(
    "dialog",
    { class: "dialog", "aria-labelledby": "dialog-title" },
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "dialog-title" }, title),
      text && h("p", null, text),
      field && [h("label", { for: "dialog-text" }, field), area],
      h("div", { class: "dialog-buttons" }, h("button", { class: "button", value: "no" }, "Not now"), agree),
    ),
  );
  if (required) {
    agree.disabled = true;
    area.addEventListener("input", () => (agree.disabled = !area.value.trim()));
  }
  return opened(box, () => (box.returnValue === "yes" ? (area?.value ?? "") : null), area ?? agree);
}

/** Show something until it is closed. */
export function show(title, ...children) {
  const close = h("button", { class: "button", value: "no" }, "Close");
  const box = h(
    "dialog",
    { class: "dialog", "aria-labelledby": "dialog-title" },
    h("form", { method: "dialog" }, h("h2", { id: "dialog-title" }, title), children, h("div", { class: "dialog-buttons" }, close)),
  );
  return opened(box, () => null, close);
}

function opened(box, result, first) {
  return new Promise((resolve) => {
    box.addEventListener("close", () => {
      box.remove();
      resolve(result());
    });
    document.body.append(box);
    box.showModal();
    first.focus();
  });
}

/** Tell those who listen what has changed. */
export function say(text) {
  document.getElementById("said").textContent = visible(text);
}

const SECONDS = 8;

/** A message at the edge of the page, which goes by itself. */
export function note(text, tone = "") {
  document.querySelector(".note")?.remove();
  const mine = (told += 1);
  document.body.append(h("div", { class: `note ${tone}`, role: tone === "bad" ? "alert" : "status", data: { note: mine } }, text));
  setTimeout(() => document.querySelector(`.note[data-note="${mine}"]`)?.remove(), SECONDS * 1000);
}
