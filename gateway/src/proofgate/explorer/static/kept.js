// The browser as a witness: it keeps each checkpoint that it has verified, and holds the next one against it.
import * as auditor from "./auditor.js";
import { nameOf } from "./keys.js";
import { read, write } from "./storage.js";
import { ask } from "./verifier.js";
import { refusal } from "./wasm.js";

const MOST = 100;
const CONTRADICTIONS = "contradictions";
/** What shows a contradiction; any other refusal may be a server that is of no help now. */
const CONTRADICTS = new Set(["equivocation", "set_back", "root_mismatch", "proof_length"]);

const nameFor = (key) => `checkpoints/${key.text}`;
const sizeOf = (answer) => BigInt(answer.size);

/** The kept checkpoints of a key's log: `{note, size, seen}`, the smallest first. */
export function all(key) {
  const kept = read(nameFor(key), []);
  return Array.isArray(kept) ? kept.filter((one) => typeof one?.note === "string") : [];
}

export function contradictions() {
  const kept = read(CONTRADICTIONS, []);
  return Array.isArray(kept) ? kept : [];
}

export const forgetContradictions = () => write(CONTRADICTIONS, []);

function keep(key, note, size) {
  const kept = all(key).filter((one) => one.note !== note);
  kept.push({ note, size, seen: Date.now() });
  kept.sort((one, other) => (BigInt(one.size) < BigInt(other.size) ? -1 : 1));
  // The oldest says most of the past, the newest ones most of the present.
  if (kept.length > MOST) kept.splice(1, kept.length - MOST);
  write(nameFor(key), kept);
}

/** A checkpoint of the one log that has the key's name. */
async function own(key, note) {
  const verified = await ask("checkpoint", note, key.text);
  if (!verified.ok || verified.origin === nameOf(key)) return verified;
  return refusal("other_origin", `${verified.origin} is not the log of this key`);
}

/**
 * Whether one history leads from an older checkpoint to a newer one, by the auditor's proof and the verifier.
 * A code in CONTRADICTS says that it does not; anything else, that it was not shown.
 */
export async function compare(key, older, newer) {
  const [first, second] = [await own(key, older), await own(key, newer)];
  if (!first.ok) return first;
  if (!second.ok) return second;
  if (sizeOf(first) > sizeOf(second)) {
    const message = `the log was signed at size ${first.size}, and now at size ${second.size}`;
    return { ok: false, error: { code: "set_back", message }, older: first, newer: second };
  }
  let hashes = "[]";
  if (sizeOf(first) > 0n && sizeOf(first) < sizeOf(second)) {
    try {
      hashes = await auditor.consistency(first.size, second.size);
    } catch (error) {
      return { ok: false, error: { code: error.code ?? "no_proof", message: error.message }, older: first, newer: second };
    }
  }
  return { older: first, newer: second, ...(await ask("consistency", older, newer, key.text, hashes)) };
}

export const contradicts = (answer) => !answer.ok && CONTRADICTS.has(answer.error.code);

/** Keeps a contradiction, for every view to tell, until the reader forgets it. */
export function accuse(key, older, newer, { code, message }) {
  const known = contradictions();
  if (known.some((one) => one.older === older && one.newer === newer)) return;
  write(CONTRADICTIONS, [...known.slice(0, 19), { key: key.text, older, newer, code, message, seen: Date.now() }]);
  document.dispatchEvent(new Event("proofgate-contradiction"));
}

/**
 * Verifies a checkpoint and holds it against the newest that was kept of the same key. Keeps it when it holds, and the
 * contradiction when it does not.
 */
export async function witness(key, note) {
  const verified = await own(key, note);
  if (!verified.ok) return { verified, compared: null, before: null };
  const before = all(key).at(-1) ?? null;
  if (before === null || before.note === note) {
    keep(key, note, verified.size);
    return { verified, compared: null, before };
  }
  let [newer, compared] = [note, await compare(key, before.note, note)];
  if (compared.error?.code === "set_back") {
    // Another window may have seen a newer one while this one came.
    newer = await auditor.checkpoint();
    compared = await compare(key, before.note, newer);
  }
  if (compared.ok) keep(key, newer, compared.newer.size);
  else if (contradicts(compared)) accuse(key, before.note, newer, compared.error);
  return { verified, compared, before };
}
