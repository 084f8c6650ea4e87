// What the auditor's port tells. Nothing of it is believed here: views hand it to the verifier.

const ROOT = new URL("..", import.meta.url);
const BUNDLE = 256;

export class AuditorError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** An answer that is none of an error. Rejects with AuditorError. */
export async function ask(path, headers = {}, { credentials = "omit", method = "GET" } = {}) {
  let answer;
  try {
    answer = await fetch(new URL(path, ROOT), { method, credentials, redirect: "error", headers });
  } catch {
    throw new AuditorError("unreachable", "the auditor does not respond");
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  throw new AuditorError(
    String(told.error?.code ?? `http_${answer.status}`),
    String(told.error?.message ?? `the auditor responded with status ${answer.status}`),
  );
}

async function json(path) {
  const answer = await ask(path);
  try {
    return await answer.json();
  } catch {
    throw new AuditorError("no_json", `${path} is not JSON`);
  }
}

async function text(path) {
  return (await ask(path)).text();
}

export const status = () => json("status");
export const heads = async () => list((await json("heads")).shards);
export const witnesses = async () => list((await json("witnesses")).witnesses);
export const keys = () => json("explorer/keys");
export const checkpoint = () => text("checkpoint");
export const proof = (index) => text(`proof?index=${index}`);
export const consistency = async (older, newer) => JSON.stringify((await json(`consistency?old=${older}&new=${newer}`)).hashes);

export async function findings() {
  const told = await json("findings");
  return { findings: list(told.findings), leftOut: Number(told.left_out) || 0 };
}

function list(value) {
  if (!Array.isArray(value)) throw new AuditorError("no_list", "the auditor's response has an unexpected format");
  return value;
}

/** How many entries a checkpoint's text says there are. Read from it unverified: for places in a list only. */
export function sizeOf(note) {
  const size = Number(note.split("\n")[1]);
  return Number.isSafeInteger(size) && size >= 0 ? size : 0;
}

/** The path of a bundle of entries (c2sp.org/tlog-tiles) in a log of this size. */
export function bundlePath(index, size) {
  const width = Math.min(BUNDLE, size - index * BUNDLE);
  let number = String(index % 1000).padStart(3, "0");
  for (let rest = Math.floor(index / 1000); rest > 0; rest = Math.floor(rest / 1000)) {
    number = `x${String(rest % 1000).padStart(3, "0")}/${number}`;
  }
  return `tile/entries/${number}${width < BUNDLE ? `.p/${width}` : ""}`;
}

/** The entries of a bundle: each stands behind its length in two bytes. */
export function splitBundle(bytes) {
  const entries = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes[at] * 256 + (bytes[at + 1] ?? 0);
    const end = at + 2 + length;
    if (end > bytes.length) throw new AuditorError("bundle", "a bundle of entries is truncated");
    entries.push(bytes.subarray(at + 2, end));
    at = end;
  }
  return entries;
}

async function bundle(index, size) {
  const answer = await ask(bundlePath(index, size));
  const entries = splitBundle(new Uint8Array(await answer.arrayBuffer()));
  const expected = Math.min(BUNDLE, size - index * BUNDLE);
  if (entries.length !== expected) {
    throw new AuditorError("bundle", `a bundle has the wrong number of entries: ${entries.length} instead of ${expected}`);
  }
  return entries;
}

/** Entries from one number up to another, as bytes. */
export async function entries(from, to, size) {
  const found = [];
  for (let index = Math.floor(from / BUNDLE); index * BUNDLE < to; index += 1) {
    const start = index * BUNDLE;
    const held = await bundle(index, size);
    held.forEach((bytes, at) => {
      if (start + at >= from && start + at < to) found.push({ index: start + at, bytes });
    });
  }
  return found;
}

/** What an entry says, for showing it; null when it is not of the form. */
export function readEntry(bytes) {
  try {
    const entry = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    // What the retention job signed has no checkpoint of a log.
    const strings = entry.kind === "statement" ? [entry.origin, entry.statement?.kind, entry.statement?.sha256] : [entry.kind, entry.origin, entry.checkpoint];
    const whole = strings.every((value) => typeof value === "string") && Number.isSafeInteger(entry.size);
    return whole ? entry : null;
  } catch {
    return null;
  }
}
