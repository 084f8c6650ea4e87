// The aggregate log as a tree: the checkpoint, its entries, one of them verified, and older checkpoints.
import * as auditor from "./auditor.js";
import { button, download, el, field, table } from "./dom.js";
import { drawing } from "./drawing.js";
import { query } from "./filters.js";
import * as keys from "./keys.js";
import * as kept from "./kept.js";
import { caveat, failure, verdict } from "./steps.js";
import { isDurable } from "./storage.js";
import { ask } from "./verifier.js";
import { count, logName, moment, plural, shortHash, shortLog } from "./words.js";

const PAGE = 20;

export async function view(argument) {
  const inUse = await keys.inUse();
  const title = el("h1", { tabindex: "-1" }, "The tree");
  const intro = el("p", {}, "The auditor's log of tree heads is a Merkle tree. Its signed root commits to every record of the ledger.");
  let note;
  try {
    note = await auditor.checkpoint();
  } catch (error) {
    const empty =
      error.code === "not_cosigned"
        ? el("p", { class: "empty" }, "No checkpoint is published yet: the witnesses of the policy have not cosigned a checkpoint.")
        : failure(error);
    return [title, intro, empty];
  }
  const size = auditor.sizeOf(note);
  const seen = await kept.witness(inUse.aggregate, note);
  const wanted = /^[0-9]{1,15}$/.test(argument) && Number(argument) < size ? Number(argument) : size - 1;
  return [
    title,
    intro,
    argument !== "" && String(wanted) !== argument ? el("p", { class: "caveat" }, `There is no entry ${argument} of ${count(size)}.`) : null,
    checkpointSection(inUse.aggregate, note, seen),
    size > 0 ? await entrySection(inUse, wanted, size, argument !== "") : el("p", { class: "empty" }, "The log has no tree head yet. The first one that the auditor accepts is entry 0."),
    size > 0 ? await listSection(wanted, size) : null,
    compareSection(inUse.aggregate, note),
  ];
}

function checkpointSection(key, note, { verified, compared, before }) {
  const lines = note.split("\n");
  let history = null;
  if (before === null) {
    history = verified.ok ? el("p", { class: "hint" }, "It is the first checkpoint that this browser stores. On later visits it is compared with the newest one.") : null;
  } else if (compared === null) {
    history = el("p", { class: "hint" }, `It is the same checkpoint that this browser saw last, ${moment(before.seen * 1000)}.`);
  } else {
    history = verdict(
      compared,
      `It is consistent with the checkpoint of ${plural(before.size, "entry", "entries")} that this browser saw ${moment(before.seen * 1000)}`,
      "It is not consistent with the checkpoint that this browser stored before",
    );
  }
  return el(
    "section",
    { "aria-labelledby": "checkpoint" },
    el("h2", { id: "checkpoint" }, "Checkpoint"),
    verdict(verified, `Signed: ${plural(lines[1], "entry", "entries")}`, "The signature is not verified"),
    caveat(key),
    history,
    isDurable() ? null : el("p", { class: "caveat" }, "This browser cannot store data for this page, so it cannot compare on the next visit."),
    el("details", {}, el("summary", {}, "The signed note"), el("pre", { tabindex: 0, "aria-label": "The signed note" }, note)),
    el("p", { class: "actions" }, button("Download the checkpoint", () => download(`checkpoint-${auditor.sizeOf(note)}`, note))),
  );
}

async function entrySection(inUse, index, size, wanted) {
  // Who asked for this entry goes on reading here.
  const heading = el("h2", { id: "entry", tabindex: -1, "data-focus": wanted }, `Entry ${count(index)}`);
  try {
    const [[{ bytes }], proof] = await Promise.all([auditor.entries(index, index + 1, size), auditor.proof(index)]);
    const answer = await ask("entry", bytes, proof, inUse.aggregate.text, keys.withStatements(inUse.ledger));
    return el(
      "section",
      { "aria-labelledby": "entry", class: "entry" },
      el(
        "div",
        {},
        heading,
        stepper(index, size),
        el(
          "div",
          { "aria-live": "polite" },
          verdict(answer, `Verified: entry ${count(index)} is in the tree`, `Not verified: entry ${count(index)}`),
        ),
        answer.path && answer.computed !== answer.checkpoint.root
          ? el("p", { class: "caveat" }, "The path does not lead to the signed root ", el("code", {}, answer.checkpoint.root))
          : null,
        details(auditor.readEntry(bytes)),
        el(
          "p",
          { class: "actions" },
          button("Download the entry", () => download(`entry-${index}.json`, bytes)),
          button("Download its proof", () => download(`entry-${index}.tlog-proof`, proof)),
        ),
      ),
      answer.path ? drawing(answer) : null,
    );
  } catch (error) {
    return el("section", { "aria-labelledby": "entry" }, heading, stepper(index, size), failure(error));
  }
}

function stepper(index, size) {
  const input = el("input", { type: "text", inputmode: "numeric", pattern: "[0-9]+", value: index, autocomplete: "off" });
  const go = () => {
    location.hash = `#/tree/${input.value.trim()}`;
  };
  const to = (text, number) =>
    number >= 0 && number < size ? el("a", { href: `#/tree/${number}` }, text) : el("span", { class: "hint" }, text);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") go();
  });
  return el(
    "div",
    { class: "stepper" },
    field("number", "Entry number", input),
    button("Show", go),
    to("older", index - 1),
    to("newer", index + 1),
  );
}

function details(entry) {
  if (entry === null) return el("p", { class: "caveat" }, "The entry does not have the auditor's format.");
  const row = (name, value) => [el("dt", {}, name), el("dd", {}, value)];
  if (entry.kind === "statement") return statementDetails(entry, row);
  return el(
    "dl",
    { class: "facts" },
    row("Kind", entry.kind),
    row("Log", el("code", {}, entry.origin)),
    row("Records", count(entry.size)),
    row("Accepted", moment(entry.time)),
    row("Previous log", entry.predecessor ? el("code", {}, String(entry.predecessor)) : "none"),
    entry.successor ? row("Next log", el("code", {}, String(entry.successor))) : null,
    row("Exchanges", el("a", { href: `#/exchanges/${query(nearby(entry))}` }, "around the time of this entry (readers only)")),
  );
}

/** What the retention job signed, by its digest: who and why stands in the statement itself. */
function statementDetails({ origin, time, statement }, row) {
  return el(
    "dl",
    { class: "facts" },
    row("Kind", `statement: ${statement.kind.replaceAll("_", " ")}`),
    row("About", el("code", {}, origin)),
    row("Signing time in the statement", moment(statement.signed)),
    row("Logged at", moment(time)),
    row("SHA-256", el("code", {}, statement.sha256)),
    Number.isSafeInteger(statement.hold) ? row("Hold", count(statement.hold)) : null,
    Number.isSafeInteger(statement.admission) ? row("Admission", count(statement.admission)) : null,
    typeof statement.key === "string" ? row("Shred key", el("code", {}, statement.key)) : null,
  );
}

/** From an hour before an entry was accepted until then. */
function nearby({ time }) {
  const at = (microseconds) => new Date(microseconds / 1000).toISOString();
  return Number.isSafeInteger(time) && time >= 0 && time < 8e18 ? { since: at(Math.max(0, time - 3.6e9)), until: at(time + 1e6) } : {};
}

async function listSection(index, size) {
  const first = Math.floor(index / PAGE) * PAGE;
  const last = Math.min(size, first + PAGE);
  const heading = el("h2", { id: "entries" }, "Entries");
  try {
    const read = await auditor.entries(first, last, size);
    const rows = read.map(({ index: number, bytes }) => {
      const entry = auditor.readEntry(bytes);
      const link = el("a", { href: `#/tree/${number}`, "aria-current": number === index ? "true" : null }, count(number));
      if (entry === null) return [link, "unknown format", "", "", ""];
      if (entry.kind === "statement") return [link, `statement: ${entry.statement.kind}`, "", "", ""];
      const shard = entry.origin.split("/").at(-2) ?? "";
      return [link, entry.kind, shard, el("code", { title: entry.origin }, shortLog(logName(entry.origin))), count(entry.size)];
    });
    const columns = [{ name: "Number", numeric: true }, { name: "Kind" }, { name: "Shard" }, { name: "Log" }, { name: "Records", numeric: true }];
    return el(
      "section",
      { "aria-labelledby": "entries" },
      heading,
      table(`Entries ${count(first)} to ${count(last - 1)} of ${count(size)}, not verified here`, columns, rows),
      el(
        "p",
        { class: "actions" },
        first > 0 ? el("a", { href: `#/tree/${first - 1}` }, "Earlier entries") : null,
        last < size ? el("a", { href: `#/tree/${last}` }, "Later entries") : null,
      ),
    );
  } catch (error) {
    return el("section", { "aria-labelledby": "entries" }, heading, failure(error));
  }
}

function compareSection(key, note) {
  const input = el("textarea", { rows: 6, spellcheck: "false", autocomplete: "off" });
  const result = el("div", { "aria-live": "polite" });
  const compare = async (older) => {
    // The page may have stood here for long: what is newer is asked for now.
    const newest = await auditor.checkpoint().catch(() => note);
    const answer = await kept.compare(key, older, newest);
    if (kept.contradicts(answer)) kept.accuse(key, older, newest, answer.error);
    const holds = answer.ok ? `Consistent: ${plural(answer.older.size, "entry", "entries")}, then ${count(answer.newer.size)}` : "";
    result.replaceChildren(verdict(answer, holds, kept.contradicts(answer) ? "Not consistent" : "Consistency is not shown"));
  };
  const known = kept.all(key).reverse();
  const rows = known.slice(0, PAGE).map((one) => [
    count(one.size),
    moment(one.seen * 1000),
    el("code", {}, shortHash(one.note.split("\n")[2] ?? "")),
    button("Compare", () => compare(one.note), { "aria-label": `Compare with the checkpoint of ${plural(one.size, "entry", "entries")}` }),
  ]);
  const columns = [{ name: "Entries", numeric: true }, { name: "Seen here" }, { name: "Root" }, { name: "" }];
  return el(
    "section",
    { "aria-labelledby": "compare" },
    el("h2", { id: "compare" }, "Compare with an older checkpoint"),
    field("older", "An older checkpoint of this log (the whole signed note)", input, "From your own file, a witness, or another reader. Only its size is sent."),
    // What is pasted often comes without the last line end, which belongs to a note.
    button("Compare", () => compare(`${input.value.trimEnd()}\n`)),
    result,
    rows.length > 0 ? table("Checkpoints that this browser has verified and stored", columns, rows) : null,
  );
}
