// Verdicts, as the page names them.
import { el } from "./dom.js";

const WORDS = new Map([
  ["would_block", "would be denied"],
  ["blocked", "response denied"],
  ["denied", "denied by policy"],
]);
const BAD = ["blocked", "denied"];

/** The verdict of an exchange with the rules that matched, and why it was refused where no rule did. */
export function verdictOf({ verdict, rules, outcome }) {
  const word = WORDS.get(verdict) ?? String(verdict);
  const why = rules.length > 0 ? rules.join(", ") : verdict === "refused" || verdict === "denied" ? String(outcome) : null;
  return [BAD.includes(verdict) ? el("strong", { class: "denied" }, word) : word, why === null ? null : [" ", el("small", {}, why)]];
}
