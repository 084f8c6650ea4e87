// What the auditor found, the worst first.
import * as auditor from "./auditor.js";
import { el } from "./dom.js";
import { moment, plural } from "./words.js";

const ORDER = ["invalid", "diverged", "incomplete"];
const MEANS = {
  invalid: "Some data does not match what was signed.",
  diverged: "There are two histories, or one was rolled back.",
  incomplete: "Something is missing or delayed. This is not necessarily an attack.",
};
const DOCS = "docs/concepts/auditor.md, “What it notices”";

export const rank = (verdict) => (ORDER.indexOf(verdict) + 1 || ORDER.length + 1);
export const worst = (findings) => findings.map((found) => found.verdict).sort((a, b) => rank(a) - rank(b))[0];
export const means = (verdict) => MEANS[verdict] ?? "";

/** A list of findings as they are told. */
export function list(findings) {
  const ordered = [...findings].sort((a, b) => rank(a.verdict) - rank(b.verdict) || b.since - a.since);
  return el(
    "ul",
    { class: "findings" },
    ordered.map((found) =>
      el(
        "li",
        { class: rank(found.verdict) <= 2 ? "bad" : "warn" },
        el("p", { class: "finding" }, el("strong", {}, String(found.verdict)), " ", el("code", {}, String(found.code))),
        el("p", {}, String(found.message)),
        el("p", { class: "hint" }, `${found.origin} · first seen ${moment(found.since)}`),
      ),
    ),
  );
}

export async function view() {
  const { findings, leftOut } = await auditor.findings();
  if (findings.length === 0) {
    return [
      el("h1", { tabindex: "-1" }, "Findings"),
      el("p", { class: "empty" }, "There are no findings; the overview shows the time of the last check. Findings report a log that was rolled back, forked, changed or removed, and delays."),
    ];
  }
  return [
    el("h1", { tabindex: "-1" }, "Findings"),
    el("p", {}, `${plural(findings.length + leftOut, "finding")}. For the meaning of each code, and how soon it is detected, see ${DOCS}.`),
    leftOut > 0 ? el("p", { class: "caveat" }, `${plural(leftOut, "finding")} are not shown, only counted.`) : null,
    list(findings),
  ];
}
