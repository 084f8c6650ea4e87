// From when until when: ranges that end now, or days that were chosen; all of it stands in the page's address.
import { el, field } from "./dom.js";

const HOUR = 3_600_000;
export const RANGES = new Map([
  ["hour", ["Last hour", HOUR]],
  ["day", ["Last day", 24 * HOUR]],
  ["7d", ["7 days", 7 * 24 * HOUR]],
  ["30d", ["30 days", 30 * 24 * HOUR]],
]);
export const FIRST = "day";
/** Up to this length a page that is opened again shows the same steps. */
const MINUTE = 60_000;

/** What an address asks for: `{since, until}` for the port, as RFC 3339 or days. */
export function bounds({ range, since, until }) {
  if (since || until) return { ...(since ? { since } : {}), ...(until ? { until } : {}) };
  const [, length] = RANGES.get(range) ?? RANGES.get(FIRST);
  const now = Math.ceil(Date.now() / MINUTE) * MINUTE;
  return { since: new Date(now - length).toISOString(), until: new Date(now).toISOString() };
}

/** Links to the ranges and two fields for other days; `address` makes an address of what is asked for. */
export function picker(asked, address) {
  const own = asked.since || asked.until;
  const links = [...RANGES].map(([name, [label]]) => {
    const current = !own && (asked.range ?? FIRST) === name;
    return el("a", { href: address({ range: name }), "aria-current": current ? "true" : null }, label);
  });
  const from = el("input", { type: "date", value: String(asked.since ?? "").slice(0, 10) });
  const to = el("input", { type: "date", value: String(asked.until ?? "").slice(0, 10) });
  const send = (event) => {
    event.preventDefault();
    const chosen = Object.entries({ since: from.value, until: to.value }).filter(([, value]) => value);
    location.hash = address(chosen.length > 0 ? Object.fromEntries(chosen) : { range: FIRST });
  };
  return el(
    "div",
    { class: "range" },
    el("p", { class: "choices", role: "group", "aria-label": "Time range" }, links),
    el(
      "details",
      { open: Boolean(own) },
      el("summary", {}, "Other days"),
      el("form", { class: "filters", "aria-label": "Other days", on: { submit: send } }, field("range-since", "From (UTC)", from), field("range-until", "To, including this day", to), el("p", { class: "actions" }, el("button", { type: "submit" }, "Show"))),
    ),
  );
}
