// What tenants did, added up by the auditor's index: exchanges, refusals, tokens, cost, by day; and which shards recorded it.
import { el, svg, table } from "./dom.js";
import { dollars } from "./exchange.js";
import { form, fromAddress, query } from "./filters.js";
import { read } from "./reader.js";
import { forReader, missing } from "./sign-in.js";
import { count, plural } from "./words.js";

const NAMES = ["tenant", "since", "until"];
const DAYS = 7;
const MILLISECONDS = 86_400_000;

export async function view(argument) {
  const asked = fromAddress(argument, NAMES);
  const intro = "The totals of each tenant in the auditor's index.";
  return forReader("Tenants", intro, async ({ tenant }) => {
    const { filters, tenants, index } = await totals(asked);
    return [form("tenants", filters, tenant, NAMES), missing(index), tenants.length > 0 ? section(tenants, filters) : empty()];
  });
}

/** The totals of what is asked for. An index may hold years, and adding up reads all: without a time it is the last days. */
async function totals(asked) {
  const get = async (filters) => ({ filters, ...(await read(`v1/tenants?${query(filters)}`)) });
  if (asked.since || asked.until) return get(asked);
  const since = new Date(Date.now() - (DAYS - 1) * MILLISECONDS).toISOString().slice(0, 10);
  try {
    return await get({ ...asked, since });
  } catch (error) {
    // It keeps fewer days than that.
    if (error.code === "day_pruned") return get(asked);
    throw error;
  }
}

function empty() {
  return el("p", { class: "empty" }, "No tenant has an exchange in this time range. A tenant appears some seconds after its first request. Choose an earlier “since” to see older exchanges.");
}

const tokens = (of) => `${count(of.prompt_tokens)} + ${count(of.completion_tokens)}`;
/** The cost as far as it is known. */
const cost = (of) => (of.unpriced > 0 && of.cost_nanodollars === 0 ? "not known" : dollars(of.cost_nanodollars));
const nameOf = ({ tenant }) => tenant ?? "nobody's";

function section(tenants, filters) {
  const columns = [
    ...[{ name: "Tenant" }, { name: "Exchanges", numeric: true }, { name: "Refused", numeric: true }, { name: "Blocked", numeric: true }],
    ...[{ name: "Without an end", numeric: true }, { name: "Tokens", numeric: true }, { name: "Cost", numeric: true }, { name: "Shards" }],
  ];
  const rows = tenants.map((of) => [
    of.tenant === null ? el("span", { title: "Refused before the tenant was known" }, nameOf(of)) : el("a", { href: `#/exchanges/${query({ ...filters, tenant: of.tenant })}` }, of.tenant),
    ...[of.exchanges, of.refused, of.blocked, of.open].map(count),
    tokens(of),
    [cost(of), of.unpriced > 0 ? el("small", {}, ` ${count(of.unpriced)} unpriced`) : null],
    of.shards.join(", "),
  ]);
  return el(
    "section",
    { "aria-label": "Tenants" },
    table("In this time range, days in UTC; tokens of prompts and responses", columns, rows, "wide"),
    el("p", { class: "hint" }, "The shards that served a tenant; several mean that it moved, or that another shard refused it. “Unpriced” exchanges ended without a known cost: no price is configured, or the provider reported no usage."),
    tenants.filter(({ tenant }) => tenant !== null).map(byDay),
  );
}

function byDay(of) {
  const priced = of.days.some((day) => day.cost_nanodollars > 0);
  const figure = priced ? "cost_nanodollars" : "exchanges";
  const columns = [{ name: "Day" }, { name: "Exchanges", numeric: true }, { name: "Refused", numeric: true }, { name: "Tokens", numeric: true }, { name: "Cost", numeric: true }];
  const rows = of.days.map((day) => [day.day, count(day.exchanges), count(day.refused), tokens(day), cost(day)]);
  return el(
    "section",
    { class: "by-day" },
    el("h2", {}, nameOf(of)),
    el("p", { class: "hint" }, `${priced ? "Cost" : "Exchanges"} of each day with any, ${plural(of.days.length, "day")}`),
    bars(of.days.map((day) => day[figure])),
    el("details", {}, el("summary", {}, `Day by day, ${nameOf(of)}`), table(`Each day of ${nameOf(of)}`, columns, rows)),
  );
}

/** What the table says, seen at once. */
function bars(values) {
  const most = Math.max(...values, 1);
  const height = (value) => (value > 0 ? Math.max(1, (value / most) * 40) : 0);
  return svg(
    "svg",
    { class: "bars", viewBox: `0 0 ${Math.max(values.length, 7) * 10} 41`, preserveAspectRatio: "xMinYMax meet", "aria-hidden": "true" },
    svg("path", { d: `M0 40.5H${Math.max(values.length, 7) * 10}` }),
    values.map((value, at) => svg("rect", { x: at * 10 + 1, y: 40 - height(value), width: 8, height: height(value) })),
  );
}
