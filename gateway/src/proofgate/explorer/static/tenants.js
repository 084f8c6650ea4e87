// What tenants did, added up by the auditor's index: exchanges, refusals, tokens, cost, by day; and which shards recorded it.
import { el, svg, table } from "./dom.js";
import { form, fromAddress, query } from "./filters.js";
import { dollars } from "./money.js";
import { namesOf } from "./names.js";
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
    const [{ filters, tenants, index }, names] = await Promise.all([totals(asked), namesOf()]);
    return [form("tenants", filters, tenant, { shown: NAMES, names }), missing(index), tenants.length > 0 ? section(tenants, filters) : empty()];
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
const nameOf = ({ tenant }) => tenant ?? "no tenant";

function section(tenants, filters) {
  const columns = [
    ...[{ name: "Tenant" }, { name: "Exchanges", numeric: true }, { name: "Denied by policy", numeric: true }, { name: "Responses denied", numeric: true }],
    ...[{ name: "Redacted", numeric: true }, { name: "Refused otherwise", numeric: true }, { name: "Without an end", numeric: true }, { name: "Tokens", numeric: true }, { name: "Cost", numeric: true }, { name: "Shards" }],
  ];
  const byCost = [...tenants].sort((one, other) => other.cost_nanodollars - one.cost_nanodollars || other.exchanges - one.exchanges);
  const rows = byCost.map((of) => [
    of.tenant === null ? el("span", { title: "Refused before the tenant was known" }, nameOf(of)) : el("a", { href: `#/exchanges/${query({ ...filters, tenant: of.tenant })}` }, of.tenant),
    ...[of.exchanges, of.denied, of.blocked, of.redacted, of.refused, of.open].map(count),
    tokens(of),
    [cost(of), of.unpriced > 0 ? el("small", {}, ` ${count(of.unpriced)} unpriced`) : null],
    of.shards.join(", "),
  ]);
  return el(
    "section",
    { "aria-label": "Tenants" },
    table("In this time range, highest cost first. Days are in UTC; tokens are those of prompts + responses", columns, rows, "wide", tenants.length > 1 ? totalRow(tenants) : null),
    el("p", { class: "hint" }, "“Shards” lists the shards that served the tenant. Several mean that it moved, or that another shard refused it. “Unpriced” exchanges ended without a known cost: no price is configured, or the provider reported no usage."),
    byCost.filter(({ tenant }) => tenant !== null).map(byDay),
  );
}

function totalRow(tenants) {
  const sum = (name) => tenants.reduce((all, of) => all + (Number(of[name]) || 0), 0);
  const counts = ["exchanges", "denied", "blocked", "redacted", "refused", "open"].map((name) => count(sum(name)));
  return ["Total", ...counts, `${count(sum("prompt_tokens"))} + ${count(sum("completion_tokens"))}`, dollars(sum("cost_nanodollars")), ""];
}

function byDay(of) {
  const priced = of.days.some((day) => day.cost_nanodollars > 0);
  const figure = priced ? "cost_nanodollars" : "exchanges";
  const columns = [{ name: "Day" }, { name: "Exchanges", numeric: true }, { name: "Denied by policy", numeric: true }, { name: "Tokens", numeric: true }, { name: "Cost", numeric: true }];
  const rows = of.days.map((day) => [day.day, count(day.exchanges), count(day.denied), tokens(day), cost(day)]);
  return el(
    "section",
    { class: "by-day" },
    el("h2", {}, nameOf(of)),
    el("p", { class: "hint" }, `${priced ? "Cost" : "Exchanges"} per day, on ${plural(of.days.length, "day")} with exchanges`),
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
