// What happened: requests, denials, redactions and cost over time, and who and which rules they were of.
import { el, table } from "./dom.js";
import { fromAddress, query } from "./filters.js";
import { dollars } from "./money.js";
import { read } from "./reader.js";
import { missing } from "./sign-in.js";
import { stacked } from "./stacked.js";
import { bounds, picker } from "./time-range.js";
import { count, plural } from "./words.js";

const NAMES = ["range", "since", "until", "by", "tenant"];
const BY = new Map([
  ["tenant", "Tenant"],
  ["model", "Model"],
  ["verdict", "Verdict"],
]);
const CHARTS = [
  ["Requests", "exchanges", count],
  ["Denied by policy", "denied", count],
  ["Redacted", "redacted", count],
  ["Cost", "cost_nanodollars", (value) => dollars(value) ?? ""],
];
const VERDICTS = new Map([
  ["allowed", "allowed"],
  ["flagged", "flagged"],
  ["redacted", "redacted"],
  ["would_block", "would be denied (dry run)"],
  ["blocked", "response denied"],
  ["denied", "request denied by policy"],
  ["refused", "refused for another reason"],
]);

/** The sections of a reader, as an address asks for them. */
export async function sections(argument) {
  const asked = fromAddress(argument, NAMES);
  const by = BY.has(asked.by) ? asked.by : "tenant";
  const address = (more) => `#/overview/${query({ ...(by === "tenant" ? {} : { by }), ...(asked.tenant ? { tenant: asked.tenant } : {}), ...more })}`;
  const time = bounds(asked);
  const told = await read(`v1/overview?${query({ ...time, by, ...(asked.tenant ? { tenant: asked.tenant } : {}) })}`);
  const choices = [...BY].map(([name, label]) =>
    el("a", { href: `#/overview/${query({ ...asked, by: name })}`, "aria-current": name === by ? "true" : null }, label),
  );
  return [
    picker(asked, address),
    missing(told.index),
    figures(told, time),
    told.totals.exchanges > 0
      ? el("p", { class: "choices", role: "group", "aria-label": "Divide the charts by" }, el("span", {}, "Divided by"), choices)
      : el("p", { class: "empty" }, "No request in this time range. Choose a longer one, or send a request: it appears some seconds later."),
    told.totals.exchanges > 0 ? charts(told, by) : null,
    told.totals.exchanges > 0 ? el("div", { class: "columns" }, topTenants(told, time), topModels(told, time), topRules(told, time)) : null,
  ];
}

function figures({ totals, since, until }, time) {
  const figure = (name, value, filters, note) => el("div", { class: "figure" }, el("dt", {}, name), el("dd", {}, filters ? el("a", { href: `#/exchanges/${query({ ...time, ...filters })}` }, value) : value, note ? el("small", {}, note) : null));
  return el(
    "section",
    { "aria-label": "In this time range" },
    el("p", { class: "hint" }, `From ${when(since)} to ${when(until)} UTC`),
    el(
      "dl",
      { class: "figures" },
      figure("Requests", count(totals.exchanges), {}),
      figure("Denied by policy", count(totals.denied), { verdict: "denied" }, totals.blocked > 0 ? `and ${plural(totals.blocked, "response")}` : null),
      figure("Redacted", count(totals.redacted), { verdict: "redacted" }),
      figure("Refused otherwise", count(totals.refused), { verdict: "refused" }, "limits, keys, errors"),
      figure("Cost", dollars(totals.cost_nanodollars) ?? "", null, totals.unpriced > 0 ? `${count(totals.unpriced)} without a price` : null),
    ),
  );
}

const when = (text) => String(text).replace("T", " ").slice(0, 16);

function charts({ series, since, step_seconds: step, totals }, by) {
  const steps = series[0]?.exchanges.length ?? 0;
  const begin = Date.parse(since) / 1000;
  const times = Array.from({ length: steps }, (_, at) => begin + at * step);
  const nameOf = ({ name, others }) => (others ? "others" : by === "verdict" ? (VERDICTS.get(name) ?? String(name)) : (name ?? (by === "tenant" ? "no tenant" : "no model")));
  const of = (figure) => series.filter((one) => Array.isArray(one[figure])).map((one) => ({ label: nameOf(one), values: one[figure] }));
  const shown = by === "verdict" ? CHARTS.slice(0, 1) : CHARTS;
  return el(
    "section",
    { "aria-label": `Over time, by ${by}`, class: "charts-over-time", "data-total": totals.exchanges },
    shown.map(([title, figure, words]) => stacked(title, times, step, of(figure), words)),
  );
}

function topTenants({ tenants }, time) {
  const columns = [{ name: "Tenant" }, { name: "Requests", numeric: true }, { name: "Denied", numeric: true }, { name: "Cost", numeric: true }];
  const rows = tenants.map((of) => [
    of.tenant === null ? "no tenant" : el("a", { href: `#/exchanges/${query({ ...time, tenant: of.tenant })}` }, of.tenant),
    count(of.exchanges),
    count(of.denied),
    dollars(of.cost_nanodollars),
  ]);
  return el("section", { "aria-labelledby": "top-tenants" }, el("h2", { id: "top-tenants" }, "Top tenants"), table("By cost", columns, rows));
}

function topModels({ models }, time) {
  const columns = [{ name: "Model" }, { name: "Requests", numeric: true }, { name: "Cost", numeric: true }];
  const rows = models
    .filter(({ model }) => model !== null)
    .map((of) => [el("a", { href: `#/exchanges/${query({ ...time, model: of.model })}` }, of.model), count(of.exchanges), dollars(of.cost_nanodollars)]);
  return el("section", { "aria-labelledby": "top-models" }, el("h2", { id: "top-models" }, "Top models"), table("By cost", columns, rows));
}

function topRules({ rules }, time) {
  const columns = [{ name: "Rule" }, { name: "Matched", numeric: true }, { name: "Denied", numeric: true }, { name: "Redacted", numeric: true }];
  const rows = rules.map((of) => [el("a", { href: `#/exchanges/${query({ ...time, rule: of.rule })}` }, of.rule), count(of.exchanges), count(of.denied), count(of.redacted)]);
  return el(
    "section",
    { "aria-labelledby": "top-rules" },
    el("h2", { id: "top-rules" }, "Top rules"),
    rows.length > 0 ? table("Requests in which a rule matched, and what happened to them", columns, rows) : el("p", { class: "empty" }, "No rule matched. Rules are configured under “policy”."),
  );
}
