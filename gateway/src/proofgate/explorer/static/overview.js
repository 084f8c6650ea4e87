// What the auditor's word is worth now: its verdict, its age, the shards that it follows.
import * as auditor from "./auditor.js";
import { chains } from "./chains.js";
import { el, table } from "./dom.js";
import * as findings from "./findings.js";
import { sections } from "./landing.js";
import { signedIn } from "./reader.js";
import { forReader } from "./sign-in.js";
import { count, duration, moment, plural } from "./words.js";

/** An auditor that has not looked for longer than this says nothing of now. */
const STALE_SECONDS = 60;
const NEWEST = 512;

function judge(status, found) {
  const worst = findings.worst(found);
  if (!status.last_poll) {
    return { mark: "warn", title: "The first check has not finished", text: "The first check reads the whole ledger. Nothing is known until it ends." };
  }
  if (worst) {
    return { mark: findings.rank(worst) <= 2 ? "bad" : "warn", title: `The ledger is ${worst}`, text: findings.means(worst) };
  }
  if (status.poll_age_seconds > STALE_SECONDS) {
    return { mark: "warn", title: "The auditor has stopped checking", text: "Its results apply only up to its last check." };
  }
  if (status.records_behind > 0) {
    return { mark: "warn", title: "Nothing found so far", text: "It is still reading signed records." };
  }
  return { mark: "good", title: "Nothing found", text: "Every signed record matches its root, and every log continues the log before it." };
}

function figure(name, value, note) {
  return el("div", { class: "figure" }, el("dt", {}, name), el("dd", {}, value, note ? el("small", {}, note) : null));
}

function witnessTable(witnesses) {
  if (witnesses.length === 0) {
    return el("p", { class: "empty" }, "No witness is configured. Add --witness-policy, or spec.auditor.witnesses in a manifest.");
  }
  const rows = witnesses.map((one) => [
    String(one.name),
    one.asked ? String(one.last || "not contacted yet") : "not contacted",
    count(one.size),
    one.time ? moment(one.time * 1_000_000) : "never",
  ]);
  const columns = [{ name: "Witness" }, { name: "Last answer" }, { name: "Checkpoints cosigned", numeric: true }, { name: "When" }];
  return table("Witnesses of the auditor's log", columns, rows);
}

/** The newest entries of the aggregate log; none where no checkpoint is published. */
async function newestEntries(note) {
  const size = auditor.sizeOf(note);
  const read = await auditor.entries(Math.max(0, size - NEWEST), size, size);
  return { size, entries: read.map(({ index, bytes }) => ({ index, ...auditor.readEntry(bytes) })).filter((one) => one.origin && one.kind !== "access" && one.kind !== "statement") };
}

const NO_READERS = "This auditor keeps no index of requests. Set spec.auditor.index with readersSecretRef or oidc in a manifest, or --index with --readers on the command line, to see requests, denials and costs here.";

/** Since when nothing contradicts the log: the time of its first entry, as the auditor recorded it. */
async function beginning(size) {
  if (size === 0) return null;
  const [{ bytes }] = await auditor.entries(0, 1, size);
  return auditor.readEntry(bytes)?.time ?? null;
}

function intact(found, since) {
  if (found.length > 0) return figure("Log intact", `no: ${plural(found.length, "finding")}`);
  return figure("Log intact since", since === null ? "not known yet" : moment(since).slice(0, 10));
}

export async function view(argument) {
  const what = await forReader("Overview", "Requests, denials and costs, and whether their log is intact.", () => sections(argument), el("p", { class: "empty" }, NO_READERS));
  const [heading, intro, ...rest] = what;
  const ledger = await ledgerSections();
  // Who is not signed in sees first what needs no key.
  return signedIn() === null ? [heading, intro, ...ledger, el("h2", {}, "Requests and costs"), ...rest] : [heading, intro, ledger[0], ...rest, ...ledger.slice(1)];
}

async function ledgerSections() {
  const [status, { findings: found }, heads, witnesses] = await Promise.all([
    auditor.status(),
    auditor.findings(),
    auditor.heads(),
    auditor.witnesses(),
  ]);
  const { size, entries } = await newestEntries(String(status.checkpoint ?? ""));
  const since = await beginning(size);
  const cosigned = witnesses.filter((one) => one.size > 0).length;
  const { mark, title, text } = judge(status, found);
  const looked = status.last_poll ? `${duration(status.poll_age_seconds)} ago` : "never";
  return [
    el(
      "section",
      { class: `judgement ${mark}`, "aria-label": "Verdict" },
      el("p", { class: "title" }, title),
      el("p", {}, text, " ", found.length > 0 ? el("a", { href: "#/findings" }, plural(found.length, "finding")) : null),
      el(
        "dl",
        { class: "figures" },
        intact(found, since),
        figure("Witnesses", witnesses.length > 0 ? `${count(cosigned)} of ${count(witnesses.length)} cosigned` : "none"),
        figure("Last check", looked),
        figure("Records verified", count(status.records_verified ?? 0), "since it started"),
        figure("Records behind", count(status.records_behind), status.lag_seconds ? `for ${duration(status.lag_seconds)}` : null),
        figure("Failed checks", count(status.poll_failures)),
        figure("Checkpoints in its log", count(size)),
      ),
    ),
    found.length > 0 ? el("section", {}, el("h2", {}, "Findings"), findings.list(found.slice(-20))) : null,
    el(
      "section",
      {},
      el("h2", {}, "Shards"),
      chains(heads, entries),
      size > NEWEST ? el("p", { class: "hint" }, `The list covers only the newest ${count(NEWEST)} entries of the auditor's log.`) : null,
    ),
    el("section", {}, el("h2", {}, "Witnesses"), witnessTable(witnesses)),
  ];
}
