// The files that are kept of a job.

import { route } from "/assets/api.js";
import { h } from "/assets/dom.js";
import { section } from "/assets/parts.js";
import { bytes, number, plural } from "/assets/text.js";

const MOST = 200;

export function artifactsOf({ id, artifacts }) {
  if (!artifacts) return h("div");
  const files = artifacts.files.slice(0, MOST).map((file) =>
    h("li", { class: "file" }, h("a", { class: "mono", href: route(["jobs", id, "artifacts", ...file.path.split("/")]), download: file.path.split("/").at(-1) }, h("bdi", null, file.path)), h("span", { class: "soft push", title: `sha256 ${file.sha256}` }, bytes(file.bytes))),
  );
  const notes = [
    artifacts.error,
    artifacts.files.length > MOST && `${number(artifacts.files.length - MOST)} more: forge-actors artifact list ${id}`,
    ...artifacts.left_out.map((each) => `${each.path} was left out: ${each.reason}`),
    artifacts.left_out_more > 0 && `${plural(artifacts.left_out_more, "more")} left out`,
  ].filter(Boolean);
  return section("Artifacts", "artifacts", h("ul", { class: "files" }, files), notes.map((text) => h("p", { class: "soft" }, h("bdi", null, text))));
}
