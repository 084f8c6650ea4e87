// What exchanges are asked for: the filters of docs/how-to/query-and-export.md as fields, and as a part of the page's address.
import { button, el, field } from "./dom.js";

const VERDICTS = new Map([
  ["allowed", "allowed"],
  ["flagged", "flagged"],
  ["redacted", "redacted"],
  ["would_block", "would be denied (dry run)"],
  ["blocked", "response denied"],
  ["denied", "denied by policy"],
  ["refused", "refused otherwise"],
]);
const DAY = "day";
const FIELDS = [
  ["tenant", "Tenant"],
  ["model", "Model"],
  ["verdict", "Verdict", VERDICTS],
  ["rule", "Rule"],
  ["since", "From (UTC)", DAY],
  ["until", "To, including this day (UTC)", DAY],
  ["provider", "Provider"],
  ["outcome", "Outcome"],
  ["key_name", "Key name"],
  ["key", "Key id"],
  ["min_cost", "Minimum cost, US dollars"],
  ["id", "Request id"],
  ["session", "Session"],
  ["end_user_name", "End user's name"],
  ["end_user", "End user's pseudonym"],
  ["client_address", "Client's address"],
  ["agent", "Agent"],
  ["trace_id", "Trace id"],
];
/** So many fields are seen at once; the others are behind “More filters”. */
const FIRST = 6;
const ALL = FIELDS.map(([name]) => name);

/** The filters that an address names; others in it are passed over. */
export function fromAddress(argument, names = ALL) {
  const asked = new URLSearchParams(argument);
  const known = names.map((name) => [name, (asked.get(name) ?? "").trim()]);
  return Object.fromEntries(known.filter(([, value]) => value !== ""));
}

export function query(filters, more = {}) {
  return new URLSearchParams({ ...filters, ...more }).toString();
}

/**
 * A form of filters which, sent, goes to the address of a view. A reader of one tenant is not asked for it. `names` are
 * offered in fields. On a narrow screen the form is closed, so that the first rows are seen.
 */
export function form(view, filters, tenant, { shown = ALL, names = {} } = {}) {
  const fields = FIELDS.filter(([name]) => shown.includes(name) && !(name === "tenant" && tenant !== null));
  const controls = fields.map(([name, label, values]) => [name, label, control(filters[name] ?? "", values)]);
  const go = (asked) => {
    location.hash = `#/${view}/${query(asked)}`;
  };
  const send = (event) => {
    event.preventDefault();
    go(Object.fromEntries(controls.map(([name, , node]) => [name, node.value.trim()]).filter(([, value]) => value !== "")));
  };
  const drawn = controls.map(([name, label, node]) => [field(`filter-${name}`, label, node), suggestions(name, node, names[name] ?? [])]);
  const more = drawn.slice(FIRST);
  const hasMore = controls.slice(FIRST).some(([name]) => filters[name]);
  const set = Object.keys(filters).length;
  return el(
    "details",
    { class: "filters-box", open: set > 0 || matchMedia("(min-width: 48rem)").matches },
    el("summary", {}, set > 0 ? `Filters (${set})` : "Filters"),
    el(
      "form",
      { role: "search", "aria-label": "Filters", on: { submit: send } },
      el("div", { class: "filters" }, drawn.slice(0, FIRST)),
      more.length > 0 ? el("details", { open: hasMore }, el("summary", {}, "More filters"), el("div", { class: "filters" }, more)) : null,
      el("p", { class: "actions" }, el("button", { type: "submit" }, "Show"), button("Clear", () => go({}))),
    ),
  );
}

function control(value, values) {
  // A time that an address names stays as it is.
  const isDay = values === DAY && (value === "" || /^\d{4}-\d{2}-\d{2}$/.test(value));
  if (isDay) return el("input", { type: "date", value });
  if (!(values instanceof Map)) return el("input", { type: "text", value, autocomplete: "off", spellcheck: "false" });
  const options = [["", "any"], ...values].map(([name, label]) => el("option", { value: name, selected: name === value }, label));
  return el("select", {}, options);
}

function suggestions(name, node, values) {
  if (values.length === 0) return null;
  node.setAttribute("list", `choices-${name}`);
  return el("datalist", { id: `choices-${name}` }, values.map((value) => el("option", { value })));
}
