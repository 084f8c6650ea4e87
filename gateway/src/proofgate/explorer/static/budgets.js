// What tenants may use, what they have used, and where each lives: limits of the configuration that the records name, sums of the index.
import { el, svg, table } from "./dom.js";
import { dollars } from "./money.js";
import { form, fromAddress, query } from "./filters.js";
import { read } from "./reader.js";
import { ring } from "./ring.js";
import { forReader, missing } from "./sign-in.js";
import { count, plural } from "./words.js";

const NAMES = ["tenant"];
const INTRO = "The limits of each tenant, its recorded use, and the shard that serves it.";
const UNKNOWN = new Map([
  ["configuration_not_named", "No log names its configuration yet. A worker writes it as the first record of each log. Limits are shown once such a record has been read."],
  ["configuration_unknown", "The configuration that the records name is not archived beside the ledger. Workers archive it in the folder “configurations” when they start."],
  ["configuration_changed", "The archived configuration does not match its digest, so it is not shown."],
  ["configuration_of_earlier_version", "The configuration that the records name was archived by an earlier version, in another form. Limits are shown once a worker of this version has started."],
  ["configuration_unreadable", "The configuration that the records name cannot be read."],
]);

export async function view(argument) {
  const filters = fromAddress(argument, NAMES);
  return forReader("Budgets", INTRO, async ({ tenant }) => {
    const told = await read(`v1/budgets?${query(filters)}`);
    return [form("budgets", filters, tenant, { shown: NAMES }), missing(told.index), ...content(told)];
  });
}

function content({ tenants, left_out: leftOut, limit_kinds: kinds = [], shards, windows, configuration }) {
  const limits = source(configuration);
  if (tenants.length === 0) {
    return [limits, el("p", { class: "empty" }, "No tenant is known. A tenant is listed if the configuration in force names it, or some seconds after its first request.")];
  }
  return [
    limits,
    el(
      "section",
      { "aria-labelledby": "used" },
      el("h2", { id: "used" }, "Budgets"),
      table(`Use in these windows, and the limits: ${spans(windows)}`, columns(windows), tenants.map((of) => row(of, windows, kinds)), "wide"),
      windows.month && !windows.month.whole ? el("p", { class: "caveat" }, "The index has only a part of this month, so earlier use is missing.") : null,
      leftOut > 0 ? el("p", { class: "caveat" }, `Not shown: ${plural(leftOut, "tenant")}. Filter by tenant to see one.`) : null,
      el(
        "p",
        { class: "hint" },
        "Tokens are those of prompts and responses of exchanges admitted in the window, as reported by providers. For an exchange that has not ended, workers count its reservation, so they may refuse a little earlier. “Unpriced” exchanges ended without a known cost.",
      ),
    ),
    models(tenants),
    el("section", { "aria-labelledby": "ring" }, el("h2", { id: "ring" }, "Placement"), ring(tenants, shards)),
  ];
}

/** Where the limits come from, or why there are none. */
function source({ digest, since, others, beside, code }) {
  if (code) return el("p", { class: "caveat" }, UNKNOWN.get(code) ?? "The configuration is not known.", " ", el("code", {}, String(digest || code)));
  return el(
    "p",
    { class: "hint" },
    "Limits are those of the configuration ",
    el("code", { title: String(digest) }, String(digest).slice(0, 16)),
    `, named by the records since ${time(since)}.`,
    others.length > 0 ? [" Shards that still use another configuration: ", others.map((other) => [el("code", {}, other.slice(0, 16)), " "])] : null,
    beside ? " Tenants that are not in it come from separate objects, and their limits are not archived." : null,
  );
}

const time = (text) => `${String(text).replace("T", " ").slice(0, 19)} UTC`;
const spans = ({ day, month }) => `the day from ${time(day.since)}${month ? `, the month from ${time(month.since)}` : ""}`;

function columns({ month }) {
  const all = [{ name: "Tenant" }, { name: "Tokens today" }, { name: "Cost today" }, month ? { name: "Cost this month" } : null];
  return [...all, { name: "Rates" }, { name: "Per key" }].filter(Boolean);
}

function row({ tenant, limits, key_limits: ofKeys, spent }, { month }, kinds) {
  const day = spent.day ?? {};
  const cells = [
    el("a", { href: `#/exchanges/${query({ tenant })}` }, tenant),
    [used(day.tokens, limits?.tokens_per_day, count), day.open > 0 ? el("small", {}, ` ${count(day.open)} not ended`) : null],
    [used(day.cost_nanodollars, limits?.nanodollars_per_day, dollars), day.unpriced > 0 ? el("small", {}, ` ${count(day.unpriced)} unpriced`) : null],
    month ? used(spent.month?.cost_nanodollars, limits?.nanodollars_per_month, dollars) : null,
    limits === null ? el("small", {}, "not known") : rates(limits, kinds.filter(hasNoColumn)),
    limits === null ? "" : rates(ofKeys ?? {}, kinds),
  ];
  return month ? cells : cells.filter((_, at) => at !== 3);
}

/** What was used of what is allowed, in words and as a bar. */
function used(value, most, name) {
  if (!(most > 0)) return `${name(value ?? 0)}`;
  const part = Math.min(1, (value ?? 0) / most);
  return [
    `${name(value ?? 0)} of ${name(most)}`,
    svg(
      "svg",
      { class: part >= 1 ? "use full" : "use", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("path", { d: "M0 5.5H100" }),
      svg("rect", { x: 0, y: 0, width: part * 100, height: 5 }),
    ),
    part >= 1 ? el("small", {}, "limit reached") : null,
  ];
}

/** Limits whose use is shown beside them. */
const COLUMNS = new Set(["tokens_per_day", "nanodollars_per_day", "nanodollars_per_month"]);
const hasNoColumn = ({ field }) => !COLUMNS.has(field);

function rate({ quantity, period }, value) {
  if (period === "now") return `${count(value)} at once`;
  return `${quantity === "money" ? dollars(value) : `${count(value)} ${quantity}`} per ${period}`;
}
const rates = (limits, kinds) =>
  kinds
    .filter(({ field }) => limits[field] !== undefined)
    .map((kind) => rate(kind, limits[kind.field]))
    .join(", ");

/** Budgets of single models; null where there are none. */
function models(tenants) {
  const rows = tenants.flatMap(({ tenant, model_budgets: budgets }) =>
    budgets.map(({ model, nanodollars_per_day: day, nanodollars_per_month: month, spent }) => [
      tenant,
      model,
      used(spent.day, day, dollars),
      month ? used(spent.month, month, dollars) : "",
    ]),
  );
  if (rows.length === 0) return null;
  const names = [{ name: "Tenant" }, { name: "Model" }, { name: "Cost today" }, { name: "Cost this month" }];
  return el("section", { "aria-labelledby": "models" }, el("h2", { id: "models" }, "Budgets of models"), table("In the same windows", names, rows, "wide"));
}
