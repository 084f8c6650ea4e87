// Who has cosigned the published checkpoint of the auditor's log, and when (c2sp.org/tlog-cosignature).
import * as auditor from "./auditor.js";
import { el, table } from "./dom.js";
import { count, duration, moment, plural } from "./words.js";

const KEY_HASH = 4;
const TIME = 8;
const ED25519 = 64;
/** Each new checkpoint waits for a moment: that much is no sign of anything. */
const PATIENCE_SECONDS = 30;

/** The cosignatures that a signed note carries: `{name, time}`, the time in unix seconds. Nothing of them is verified. */
export function cosignaturesOf(note) {
  const signatures = note.slice(note.indexOf("\n\n") + 2).split("\n");
  return signatures.flatMap((line) => {
    const [dash, name, encoded] = line.split(" ");
    if (dash !== "—" || !encoded) return [];
    let bytes;
    try {
      bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
    } catch {
      return [];
    }
    // The log's own signature has no time in it, and is shorter by that.
    if (bytes.length !== KEY_HASH + TIME + ED25519) return [];
    const time = new DataView(bytes.buffer).getBigUint64(KEY_HASH);
    return [{ name, time: Number(time) }];
  });
}

export async function view() {
  const [status, witnesses] = await Promise.all([auditor.status(), auditor.witnesses()]);
  const head = [
    el("h1", { tabindex: "-1" }, "Witnesses"),
    el("p", {}, "Witnesses remember the newest checkpoint of the auditor's log, and cosign a newer checkpoint only if both are consistent. If you trust the witnesses, you need not trust the auditor for consistency."),
  ];
  if (witnesses.length === 0) {
    return [...head, el("p", { class: "empty" }, "No witness is configured. A policy (--witness-policy, or spec.auditor.witnesses) names the witnesses that must cosign a checkpoint before it is published.")];
  }
  const note = String(status.checkpoint ?? "");
  return [...head, policy(note, status), standing(witnesses), onTheCheckpoint(note)];
}

function policy(note, status) {
  const size = auditor.sizeOf(note);
  const lag = status.cosigning_lag_seconds;
  const waiting = lag > 0 ? `Newer tree heads have waited for a quorum for ${duration(lag)}.` : "No newer tree head is waiting.";
  return el(
    "section",
    { class: `judgement ${note === "" || lag > PATIENCE_SECONDS ? "warn" : "good"}`, "aria-label": "Policy" },
    el("p", { class: "title" }, note === "" ? "The policy is not met yet" : `The policy is met for ${plural(size, "head")}`),
    el(
      "p",
      {},
      note === "" ? `No checkpoint is published before a quorum has cosigned it. ${waiting}` : `The auditor publishes no checkpoint before the policy's quorum has cosigned it. ${waiting}`,
    ),
  );
}

function standing(witnesses) {
  const columns = [{ name: "Witness" }, { name: "Last answer" }, { name: "Heads cosigned", numeric: true }, { name: "Newest cosignature" }];
  const rows = witnesses.map((one) => [
    String(one.name),
    one.asked ? String(one.last || "not contacted yet") : "not contacted",
    count(one.size),
    one.time ? moment(one.time * 1_000_000) : "never",
  ]);
  return el("section", {}, el("h2", {}, "Each witness"), table("The status of each witness", columns, rows));
}

function onTheCheckpoint(note) {
  const found = cosignaturesOf(note);
  const heading = el("h2", {}, "On the published checkpoint");
  if (found.length === 0) {
    return el("section", {}, heading, el("p", { class: "empty" }, "The published checkpoint has no cosignature. Cosignatures are listed here as soon as a checkpoint with cosignatures is published."));
  }
  const columns = [{ name: "Key's name" }, { name: "Cosigned, by the witness's clock" }];
  const rows = found.map(({ name, time }) => [name, moment(time * 1_000_000)]);
  return el(
    "section",
    {},
    heading,
    table(`Cosignatures of the checkpoint over ${plural(auditor.sizeOf(note), "head")}`, columns, rows),
    el("p", { class: "hint" }, "These cosignatures are read from the note but not verified, because this page has no witness keys. Verify them with a c2sp.org/tlog-policy client and a policy that you trust."),
  );
}
