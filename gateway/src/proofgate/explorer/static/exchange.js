// One exchange: its records, which this browser verifies, and its stages drawn from those that hold.
import { button, download, el } from "./dom.js";
import { query } from "./filters.js";
import * as keys from "./keys.js";
import { exactDollars } from "./money.js";
import { endsSignIn, read } from "./reader.js";
import { forReader } from "./sign-in.js";
import { caveat, failure, verdict } from "./steps.js";
import { ask } from "./verifier.js";
import { waterfall } from "./waterfall.js";
import { moment } from "./words.js";

const ATTRIBUTED = [
  ["session", "Session"],
  ["end_user_name", "End user"],
  ["end_user", "End user's pseudonym"],
  ["agent", "Agent"],
  ["parent_agent", "Parent agent"],
  ["trace_id", "Trace"],
];

export const addressOf = (id) => `#/exchange/${encodeURIComponent(id)}`;

export async function view(argument) {
  const id = decodeURIComponent(argument);
  const intro = "The records of the exchange in the ledger. Your browser verifies the proof of each one.";
  if (id === "") {
    return [el("h1", { tabindex: "-1" }, "Exchange"), el("p", { class: "empty" }, "No exchange is selected. Choose one from the ", el("a", { href: "#/exchanges" }, "list"), ".")];
  }
  return forReader("Exchange", intro, () => content(id));
}

async function content(id) {
  const heading = el("h2", {}, el("code", {}, id));
  let denied, receipt;
  try {
    // What the index says of it is no part of the evidence.
    ({ denied, ...receipt } = await read(`v1/exchanges/${encodeURIComponent(id)}/receipt`));
  } catch (error) {
    if (endsSignIn(error.code)) throw error;
    return [heading, told(error)];
  }
  const text = JSON.stringify(receipt);
  const { ledger } = await keys.inUse();
  const answer = await ask("receipt", new TextEncoder().encode(text), ledger.text, null, null);
  const records = recordsOf(answer);
  return [
    heading,
    facts(records, denied),
    el("section", { "aria-labelledby": "stages" }, el("h2", { id: "stages" }, "Stages"), waterfall(records)),
    el(
      "section",
      { "aria-labelledby": "proofs" },
      el("h2", { id: "proofs" }, "Proofs"),
      verdict(answer, "Verified: checkpoints signed by the ledger's key cover these records", "Not verified"),
      caveat(ledger),
      el("p", { class: "hint" }, "The download has no salts, so you cannot compare a request or a response with it. A tenant's own ", el("a", { href: "#/receipt" }, "receipt"), " has the salts."),
      records.map((record) =>
        el(
          "details",
          {},
          el("summary", {}, `${record.kind}, record ${record.seq}`),
          el("pre", { tabindex: 0, "aria-label": `The ${record.kind}` }, JSON.stringify(record, null, 2)),
        ),
      ),
      el("p", { class: "actions" }, button("Download records and proofs", () => download(`${id}.receipt.json`, text))),
    ),
  ];
}

/** The records of a receipt that were proved, parsed. */
export function recordsOf(answer) {
  return (answer.records ?? []).flatMap(({ record }) => {
    try {
      return [JSON.parse(record)];
    } catch {
      return [];
    }
  });
}

function told(error) {
  if (error.code === "no_such_exchange") return el("p", { class: "empty" }, "The index has no exchange with this id that you may see. A new exchange appears some seconds later, when the auditor has accepted a checkpoint that covers it.");
  if (error.code === "log_removed") return el("p", { class: "empty" }, "The log with its records was removed after its retention. The index still lists the exchange, but its records no longer exist.");
  return failure(error);
}

function facts(records, denied) {
  const first = records.find(({ kind }) => kind === "admission" || kind === "rejection");
  if (!first) return null;
  const end = records.find(({ kind }) => kind === "completion");
  const row = (name, value) => (value === undefined || value === null || value === "" ? null : [el("dt", {}, name), el("dd", {}, value)]);
  const usage = end?.usage;
  return el(
    "dl",
    { class: "facts" },
    row("Started", moment(first.ts)),
    row("Tenant", first.tenant ?? "no tenant"),
    row("Model", first.model),
    row("Endpoint", first.endpoint),
    row("Key", keyOf(first)),
    row("Refused", refused(first, denied)),
    row("Rules", [...new Set([first, end].flatMap((record) => record?.policy?.rules ?? []))].join(", ")),
    ATTRIBUTED.map(([name, label]) => row(label, attributed(name, first.attribution?.[name]))),
    row("Client's address", linked("client_address", first.client_address)),
    row("Tokens", usage ? `${usage.prompt_tokens} in the prompt, ${usage.completion_tokens} in the response` : null),
    row("Cost", exactDollars(end?.cost_nanodollars)),
    row("Configuration", el("code", {}, String(first.config))),
  );
}

/** The key's name, if it has one, and its id. */
function keyOf({ key, counted, key_name }) {
  const [name, id] = [linked("key_name", key_name), linked("key", key ?? counted)];
  return name && id ? [name, " (", id, ")"] : (name ?? id);
}

/** Why a request went nowhere; `denied` says that a rule or a policy denied it. */
function refused({ kind, code, status }, denied) {
  if (kind !== "rejection") return null;
  return [denied ? el("strong", { class: "denied" }, "denied by policy") : "for another reason than a rule", `: status ${status}, `, el("code", {}, String(code))];
}

const code = (value) => (typeof value === "string" ? el("code", {}, value) : null);

/** What a client says of itself, with a link to all that it says so of where the index can be asked for that. */
function attributed(name, value) {
  const text = code(value);
  if (text === null || name === "parent_agent") return text;
  return name === "session" ? el("a", { href: `#/session/${encodeURIComponent(value)}` }, text) : linked(name, value);
}

/** A fact with a link to all exchanges that have it; null for one that is not there. */
function linked(name, value) {
  const text = code(value);
  return text && el("a", { href: `#/exchanges/${query({ [name]: value })}` }, text);
}

