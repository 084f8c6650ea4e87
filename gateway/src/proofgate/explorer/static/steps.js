// How a verdict is shown: a sentence, and each step with its outcome in words.
import { el } from "./dom.js";

const OUTCOMES = { shown: "holds", refuted: "does not hold", open: "not checked" };

/** The verdict of an answer, and its steps if it has any. */
export function verdict(answer, holds, fails) {
  const title = el("p", { class: answer.ok ? "verdict good" : "verdict bad" }, answer.ok ? holds : fails);
  if (answer.error) {
    return el("div", {}, title, el("p", {}, `${answer.error.message} `, el("code", {}, answer.error.code)));
  }
  return el("div", {}, title, answer.steps ? steps(answer.steps) : null);
}

function steps(taken) {
  return el(
    "ol",
    { class: "steps" },
    taken.map(({ outcome, text, code }) =>
      el(
        "li",
        { class: outcome },
        el("span", { class: "outcome" }, OUTCOMES[outcome] ?? outcome),
        el("span", {}, text, code ? [" ", el("code", {}, code)] : null),
      ),
    ),
  );
}

/** Whose word the key is, under which something was verified. */
export function caveat(key) {
  if (key.changed) {
    return el(
      "p",
      { class: "caveat" },
      "This server offers another key than the one that is used here. ",
      el("a", { href: "#/keys" }, "See both"),
      ".",
    );
  }
  return key.source === "given"
    ? el("p", { class: "hint" }, "Verified with the key that you entered.")
    : el(
        "p",
        { class: "caveat" },
        "Verified with the key that this server offers. This shows that the server does not contradict itself, but not that the key is genuine. ",
        el("a", { href: "#/keys" }, "Enter the key"),
        " that you have from a source that you trust.",
      );
}

/** That something cannot be shown now, and why. */
export function failure(error) {
  return el(
    "p",
    { class: "verdict bad" },
    `This cannot be shown: ${error.message} `,
    error.code ? el("code", {}, error.code) : null,
  );
}
