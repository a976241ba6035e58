// Texts that others wrote made fit to be looked at, and numbers and times for people.

// Control characters, marks that turn the direction of text, what is invisible, and
// halves of characters. The rest is shown as it is.
const ODD = new RegExp(
  "[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180e" +
    "\\u200b\\u200c\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0" +
    "\\ufff9-\\ufffb]|[\\u{e0000}-\\u{e007f}]|\\p{Cs}",
  "gu",
);

const NAMES = (
  "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN " +
  "ETB CAN EM SUB ESC FS GS RS US"
).split(" ");

/** The same text, with a sign in place of each character that could not be seen. */
export function visible(text) {
  return text.replace(ODD, sign);
}

function sign(odd) {
  const code = odd.codePointAt(0);
  if (code >= 0xd800 && code <= 0xdfff) return "\ufffd";
  const name = NAMES[code] ?? (code === 0x7f ? "DEL" : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`);
  return `\u27e8${name}\u27e9`;
}

/** Lines of a text, cut where one is longer than anybody reads. */
export function cut(text, most) {
  if (text.length <= most) return text;
  return `${text.slice(0, most)} \u2026 ${number(text.length - most)} more characters`;
}

/** One element of a command as it is shown; one that is no text says so. */
export function word(argument) {
  if (typeof argument === "string") return argument;
  return `\u2039${argument.b64 ?? "?"}\u203a`;
}

const PLAIN_WORD = /^[\w@%+=:,./-]+$/;

/** A command as one would type it. */
export function command(argv) {
  return argv
    .map(word)
    .map((text) => (PLAIN_WORD.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`))
    .join(" ");
}

/** The characters of an id that people know it by. */
export const tail = (id) => String(id).slice(-6);

const grouped = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const number = (value) => grouped.format(value);
export const short = (value) => compact.format(value);

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let place = 0;
  let value = count;
  while (value >= 1000 && place < units.length - 1) {
    value /= 1000;
    place += 1;
  }
  return `${value >= 100 || place === 0 ? Math.round(value) : value.toFixed(1)} ${units[place]}`;
}

/** A span in seconds: `4.2 s`, `3 min 10 s`, `2 h 5 min`, `3 d 4 h`. */
export function span(seconds) {
  const all = Math.max(0, seconds);
  if (all < 0.9995) return `${Math.round(all * 1000)} ms`;
  if (all < 9.95) return `${all.toFixed(1)} s`;
  return clock(all);
}

/** The same in whole seconds, for what is counted up. */
export function clock(seconds) {
  const all = Math.max(0, Math.floor(seconds));
  if (all < 60) return `${all} s`;
  if (all < 3600) return two(Math.floor(all / 60), "min", all % 60, "s");
  if (all < 86400) return two(Math.floor(all / 3600), "h", Math.floor((all % 3600) / 60), "min");
  return two(Math.floor(all / 86400), "d", Math.floor((all % 86400) / 3600), "h");
}

function two(first, unit, second, smaller) {
  return second ? `${first} ${unit} ${second} ${smaller}` : `${first} ${unit}`;
}

/** How long ago, or in how long, roughly. */
export function ago(moment, now = Date.now()) {
  const seconds = (now - Date.parse(moment)) / 1000;
  const away = Math.abs(seconds);
  if (away < 5) return seconds >= 0 ? "just now" : "in a moment";
  const [count, unit] =
    away < 60 ? [Math.floor(away), "s"]
    : away < 3600 ? [Math.floor(away / 60), "min"]
    : away < 86400 ? [Math.floor(away / 3600), "h"]
    : [Math.floor(away / 86400), "d"];
  return seconds >= 0 ? `${count} ${unit} ago` : `in ${count} ${unit}`;
}

const exactly = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** The moment itself, in the time of whoever looks, and as it is stored. */
export function exact(moment) {
  return `${exactly.format(new Date(moment))} (${moment})`;
}
