// Small drawings, each with a shape of its own, so that no colour is needed to tell them apart.

import { s } from "/assets/dom.js";

const STROKES = {
  ring: ["M8 2.75a5.25 5.25 0 1 0 0 10.5 5.25 5.25 0 0 0 0-10.5z"],
  wait: ["M8 2.75a5.25 5.25 0 1 0 0 10.5 5.25 5.25 0 0 0 0-10.5z", "M8 5.25V8l1.75 1.5"],
  check: ["M3 8.5l3.25 3.25L13 4.75"],
  cross: ["M4 4l8 8M12 4l-8 8"],
  slash: ["M8 2.75a5.25 5.25 0 1 0 0 10.5 5.25 5.25 0 0 0 0-10.5z", "M4.5 11.500l7-7"],
  pause: ["M5.5 3.500v9M10.5 3.500v9"],
  dash: ["M3.5 8h9"],
  hourglass: ["M4 2.500h8M4 13.500h8M5 2.500c0 3.5 6 7.5 6 11M11 2.500c0 3.5-6 7.5-6 11"],
  unknown: ["M5.5 5.750a2.5 2.5 0 1 1 3.6 2.250c-.8.4-1.1.8-1.1 1.750", "M8 12.500v.1"],
  alert: ["M8 2.500l6 10.500H2z", "M8 6.500v3M8 11.200v.1"],
  talk: ["M2.5 3.500h11v7H7.500L4.5 13v-2.500h-2z"],
  branch: ["M5 3v10M5 9c0-2.5 6-1 6-4.5", "M11 3.200v.1"],
  lock: ["M4 7.500h8v5.500H4z", "M5.5 7.500V5.500a2.5 2.5 0 0 1 5 0v2"],
};
const FILLS = { play: "M4.5 2.750v10.500L13 8z" };

/** A drawing beside a word that says the same. */
export function icon(name, size = 16) {
  const box = { viewBox: "0 0 16 16", width: size, height: size, "aria-hidden": "true", focusable: "false", class: "icon" };
  if (FILLS[name]) return s("svg", box, s("path", { d: FILLS[name], fill: "currentColor" }));
  const stroke = { fill: "none", stroke: "currentColor", "stroke-width": 1.75, "stroke-linecap": "round", "stroke-linejoin": "round" };
  return s("svg", box, STROKES[name].map((d) => s("path", { ...stroke, d })));
}
