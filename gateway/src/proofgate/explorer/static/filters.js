// What exchanges are asked for: the filters of docs/how-to/query-and-export.md as fields, and as a part of the page's address.
import { button, el, field } from "./dom.js";

const VERDICTS = ["allowed", "flagged", "redacted", "would_block", "blocked", "refused"];
const FIELDS = [
  ["tenant", "Tenant"],
  ["model", "Model"],
  ["provider", "Provider"],
  ["verdict", "Verdict", VERDICTS],
  ["outcome", "Outcome"],
  ["rule", "Rule"],
  ["since", "Since (UTC)"],
  ["until", "Until, including this day (UTC)"],
  ["key", "Key id"],
  ["min_cost", "Minimum cost, US dollars"],
  ["id", "Request id"],
  ["session", "Session"],
  ["end_user", "End user's pseudonym"],
  ["agent", "Agent"],
  ["trace_id", "Trace id"],
];

/** The filters that an address names; others in it are passed over. */
export function fromAddress(argument, names = FIELDS.map(([name]) => name)) {
  const asked = new URLSearchParams(argument);
  const known = names.map((name) => [name, (asked.get(name) ?? "").trim()]);
  return Object.fromEntries(known.filter(([, value]) => value !== ""));
}

export function query(filters, more = {}) {
  return new URLSearchParams({ ...filters, ...more }).toString();
}

/** A form of filters which, sent, goes to the address of a view. A reader of one tenant is not asked for it. */
export function form(view, filters, tenant, names = FIELDS.map(([name]) => name)) {
  const shown = FIELDS.filter(([name]) => names.includes(name) && !(name === "tenant" && tenant !== null));
  const controls = shown.map(([name, label, values]) => [name, label, control(filters[name] ?? "", values)]);
  const go = (asked) => {
    location.hash = `#/${view}/${query(asked)}`;
  };
  const send = (event) => {
    event.preventDefault();
    go(Object.fromEntries(controls.map(([name, , node]) => [name, node.value.trim()]).filter(([, value]) => value !== "")));
  };
  return el(
    "form",
    { class: "filters", role: "search", "aria-label": "Filters", on: { submit: send } },
    controls.map(([name, label, node]) => field(`filter-${name}`, label, node)),
    el("p", { class: "actions" }, el("button", { type: "submit" }, "Show"), button("Clear", () => go({}))),
  );
}

function control(value, values) {
  if (!values) return el("input", { type: "text", value, autocomplete: "off", spellcheck: "false" });
  const options = ["", ...values].map((one) => el("option", { value: one, selected: one === value }, one || "any"));
  return el("select", {}, options);
}
