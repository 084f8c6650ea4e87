// What the analysis of answers recorded over time: each tenant and model as charts with their table, and the alarms of all.
import { chart } from "./chart.js";
import { el, table } from "./dom.js";
import { addressOf } from "./exchange.js";
import { form, fromAddress, query } from "./filters.js";
import { read } from "./reader.js";
import { forReader, missing } from "./sign-in.js";
import { count, plural } from "./words.js";

const NAMES = ["tenant", "model", "since", "until"];
const INTRO = "Workers record statistics of the responses in each window. Alarms list unusual responses and changes. An alarm reports that responses changed, but not why.";
/** Of one window, or answer: feature, name, unit, and the value of a record. */
const MEASURES = [
  ["entropy", "Entropy", "bits per token", (of) => part(of.entropy_millibits, 1000)],
  ["length", "Length", "tokens", (of) => part(of.length_millitokens, 1000)],
  ["refusal", "Refusals", "% of responses", (of) => part(of.refusal_permille, 10)],
  ["repetition", "Repetition", "% of word groups", (of) => part(of.repetition_permille, 10)],
  ["cut", "Cut", "% of responses", (of) => part(of.cut_permille, 10)],
];

const part = (value, whole) => (Number.isFinite(value) ? value / whole : NaN);
const shown = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "");
const when = (text) => String(text).replace("T", " ").slice(0, 19);
const shardOf = ({ record }) => String(record.origin ?? "").split("/").at(-2) ?? "";

export async function view(argument) {
  const filters = fromAddress(argument, NAMES);
  return forReader("Analysis", INTRO, async ({ tenant }) => {
    const { windows, answers, more, index } = await read(`v1/analysis?${query(filters)}`);
    return [form("analysis", filters, tenant, { shown: NAMES }), missing(index), ...content(windows, answers, more)];
  });
}

function content(windows, answers, more) {
  if (windows.length + answers.length === 0) {
    return [
      el(
        "p",
        { class: "empty" },
        "No analysis is recorded here. Workers record a window for every 200 responses of one tenant and model if the configuration has the section “analysis”: in a manifest ",
        el("code", {}, "spec.analysis: {}"),
        ".",
      ),
    ];
  }
  return [
    more ? el("p", { class: "caveat" }, `These are the newest ${plural(windows.length + answers.length, "record")}; older records exist. Filter by tenant, model or time to see them.`) : null,
    alarms([...windows.filter(({ findings }) => findings.length > 0), ...answers]),
    ...pairs(windows).map(section),
  ];
}

function pairs(windows) {
  const found = new Map();
  for (const of of windows) {
    const name = JSON.stringify([of.tenant, of.model]);
    found.set(name, [...(found.get(name) ?? []), of]);
  }
  return [...found.values()];
}

/** Everything that stood out, the newest first. */
function alarms(found) {
  const newest = found.sort((one, other) => (one.time < other.time ? 1 : -1));
  const rows = newest.map((of) => [
    when(of.time),
    of.tenant,
    of.model,
    el("strong", {}, of.findings.join(", ")),
    of.tests === undefined ? "one response" : `window ${count(of.number)}: ${differing(of.tests)}`,
    el("a", { href: addressOf(of.exchange) }, "exchange"),
  ]);
  const columns = [{ name: "Time (UTC)" }, { name: "Tenant" }, { name: "Model" }, { name: "Finding" }, { name: "In" }, { name: "Recorded with" }];
  return el(
    "section",
    { "aria-labelledby": "alarms-found" },
    el("h2", { id: "alarms-found" }, "Alarms"),
    rows.length > 0 ? table("Newest first", columns, rows, "wide") : el("p", { class: "empty" }, "No alarms. A window that differs from the reference, or a response that repeats itself, is listed here."),
  );
}

/** How far apart, and how likely that is by chance, of each feature that differs. */
function differing(tests) {
  const own = tests.filter(({ differs }) => differs);
  return own.map(({ feature, distance_ppm: distance, p_ppb: chance }) => `${feature} ${shown(distance / 1e6)} apart, p ${chance > 0 ? `= ${shown(chance / 1e9)}` : "< 0.000000001"}`).join("; ");
}

function section(windows) {
  const [{ tenant, model }] = windows;
  const charts = MEASURES.map(([feature, name, unit, value]) => {
    const points = windows.map((of) => ({ time: Date.parse(of.time), value: value(of), shard: shardOf(of), alarm: of.findings.includes(feature) }));
    return chart(name, unit, points);
  }).filter(Boolean);
  const columns = [
    ...[{ name: "Time (UTC)" }, { name: "Shard" }, { name: "Window", numeric: true }, { name: "Responses", numeric: true }],
    ...MEASURES.map(([, name, unit]) => ({ name: `${name}, ${unit}`, numeric: true })),
    { name: "Compared" },
  ];
  const rows = windows.map((of) => [
    ...[when(of.time), shardOf(of), count(of.number), count(of.answers)],
    ...MEASURES.map(([, , , value]) => shown(value(of))),
    of.tests.length === 0 ? "became the reference" : of.findings.length > 0 ? el("strong", {}, `differs: ${of.findings.join(", ")}`) : "like the reference",
  ]);
  return el(
    "section",
    { class: "pair" },
    el("h2", {}, `${tenant}, ${model}`),
    el("div", { class: "charts" }, charts),
    windows.some(({ findings }) => findings.length > 0) ? el("p", { class: "hint" }, "A triangle marks a window that differs from the reference in this statistic. Openings are distributions; they are compared but not drawn.") : null,
    el("details", { open: windows.length <= 12 }, el("summary", {}, `The ${plural(windows.length, "window")} of ${tenant}, ${model}`), table("Means of each window, oldest first", columns, rows, "wide")),
  );
}
