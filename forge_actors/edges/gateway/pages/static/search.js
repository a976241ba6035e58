// Finds words in lines of text, and goes from one to the next. What is found is marked
// by the browser, without a change of the page.

import { fill, h } from "/assets/dom.js";
import { number } from "/assets/text.js";

const MARKS = "found";
const HERE = "found-here";
/** Places that are marked at most. */
const MOST = 2000;

export class Search {
  constructor(body, leave) {
    this.body = body;
    this.leave = leave;
    this.ranges = [];
    this.at = -1;
    this.input = h("input", { id: "log-search", type: "search", placeholder: "Search", autocomplete: "off", spellcheck: "false", maxlength: 200 });
    this.told = h("span", { class: "soft", role: "status" });
    this.element = h("div", { class: "log-search" }, h("label", { class: "hidden", for: "log-search" }, "Search in the output"), this.input, this.told);
    this.input.addEventListener("input", () => this.look(true));
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.step(event.shiftKey ? -1 : 1);
    });
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  clear() {
    this.ranges = [];
    this.at = -1;
    this.mark();
  }

  /** There are other lines than before. */
  changed() {
    if (this.input.value) this.look(false);
  }

  look(anew) {
    const wanted = this.input.value.toLowerCase();
    this.ranges = [];
    if (wanted) {
      for (const line of this.body.querySelectorAll(".line")) {
        this.within(line.firstChild, wanted);
        if (this.ranges.length >= MOST) break;
      }
    }
    if (anew) this.at = -1;
    this.at = Math.min(this.at, this.ranges.length - 1);
    this.mark();
    if (anew && this.ranges.length) this.step(1);
  }

  within(text, wanted) {
    const lower = text.data.toLowerCase();
    // Some letters have another length in lower case; their places would be others.
    if (lower.length !== text.data.length) return;
    for (let place = lower.indexOf(wanted); place >= 0; place = lower.indexOf(wanted, place + wanted.length)) {
      const range = new Range();
      range.setStart(text, place);
      range.setEnd(text, place + wanted.length);
      this.ranges.push(range);
    }
  }

  step(by) {
    const count = this.ranges.length;
    if (count === 0) return;
    this.at = (this.at + by + count) % count;
    this.leave();
    this.mark();
    this.ranges[this.at].startContainer.parentElement.scrollIntoView({ block: "nearest" });
  }

  mark() {
    const count = this.ranges.length;
    const most = count >= MOST ? "+" : "";
    fill(this.told, this.input.value && (count ? `${number(this.at + 1)} of ${number(count)}${most}` : "not found"));
    if (!("highlights" in CSS)) return;
    CSS.highlights.set(MARKS, new Highlight(...this.ranges));
    CSS.highlights.set(HERE, new Highlight(...this.ranges.filter((_, place) => place === this.at)));
  }
}
