// What a job changed in its worktree, loaded when somebody opens it.

import { ask, route } from "/assets/api.js";
import { fill, h, part } from "/assets/dom.js";
import { bytes, cut, number, plural } from "/assets/text.js";

const LINES = 2000;
const LINE = 1000;
const FILES = 200;
const COMMITS = 50;

export class Diff {
  constructor(signal) {
    this.signal = signal;
    this.element = h("div");
  }

  show(view) {
    part(this.element, "result", view.result, () => this.resultOf(view));
  }

  resultOf({ id, result }) {
    if (!result) return h("div");
    const files = (result.files ?? []).slice(0, FILES).map((file) =>
      h(
        "li",
        { class: "file" },
        h("span", { class: "mono soft", title: NAMES[file.status] ?? file.status }, file.status),
        h("bdi", { class: "mono" }, file.renamed_from ? `${file.renamed_from} → ${file.path}` : file.path),
        h("span", { class: "push mono" }, h("span", { class: "plus" }, `+${number(file.added ?? 0)}`), " ", h("span", { class: "minus" }, `−${number(file.deleted ?? 0)}`)),
      ),
    );
    const commits = (result.commits ?? []).slice(0, COMMITS).map((commit) => h("li", { class: "file" }, h("span", { class: "mono soft" }, commit.id.slice(0, 10)), h("bdi", null, commit.subject)));
    const body = h("div", { class: "diff" });
    const patch = h("details", { on: { toggle: () => patch.open && body.childElementCount === 0 && this.load(id, body) } }, h("summary", null, "The changes, line by line"), body);
    const words = [
      result.file_count != null && plural(result.file_count, "file"),
      result.commit_count != null && plural(result.commit_count, "commit"),
      result.uncommitted ? `${number(result.uncommitted)} not committed` : null,
    ].filter(Boolean);
    return h(
      "section",
      { class: "block", "aria-labelledby": "result" },
      h("h2", { id: "result" }, "Result"),
      result.text && h("p", { class: "said" }, h("bdi", null, cut(result.text, 4000))),
      h("p", { class: "soft" }, "On ", h("bdi", { class: "mono" }, result.branch), words.length ? `: ${words.join(", ")}` : "", result.note ? `. ${result.note}` : ""),
      h("ul", { class: "files" }, commits),
      h("ul", { class: "files" }, files),
      (result.files ?? []).length > FILES && h("p", { class: "more" }, `${number(result.files.length - FILES)} more files`),
      files.length > 0 && patch,
    );
  }

  async load(id, body) {
    fill(body, h("p", { class: "soft" }, "Loading…"));
    try {
      const text = await (await ask("GET", route(["jobs", id, "diff"]), { signal: this.signal })).text();
      fill(body, patchOf(text, id));
    } catch (error) {
      fill(body, h("p", { class: "soft" }, error.message));
    }
  }
}

const NAMES = { A: "added", D: "deleted", M: "modified", R: "renamed", T: "its type changed" };

function patchOf(text, id) {
  const all = text.split("\n");
  const lines = all.slice(0, LINES).map((line) => h("div", { class: `line ${toneOf(line)}` }, cut(line, LINE) || " "));
  const rest = all.length > LINES && h("p", { class: "more" }, `${number(all.length - LINES)} more lines, ${bytes(text.length)} in all: `, h("a", { href: route(["jobs", id, "diff"]), download: `${id}.patch` }, "the whole patch"));
  return [h("div", { class: "lines", tabindex: 0, role: "group", "aria-label": "Patch" }, lines), rest];
}

function toneOf(line) {
  if (line.startsWith("diff --git")) return "file-line";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+") && !line.startsWith("+++")) return "plus";
  if (line.startsWith("-") && !line.startsWith("---")) return "minus";
  return "";
}
