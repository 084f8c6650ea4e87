// Which verifying keys this browser goes by, and where it has them from.
import * as auditor from "./auditor.js";
import { read, write } from "./storage.js";

const NAME = "keys";
/** Given: the reader has entered it. Offered: this server told it, on the first visit. */
const GIVEN = "given";
const OFFERED = "offered";

/**
 * The keys in use: `{aggregate, ledger}`, each `{text, source, changed}`. A key that the server offered stays the one of the
 * first visit; `changed` is what the server offers now, when that is another one.
 */
export async function inUse() {
  const kept = read(NAME, {});
  const offered = await auditor.keys();
  const keys = {};
  for (const which of ["aggregate", "ledger"]) {
    const told = String(offered[which] ?? "");
    const known = kept[which];
    if (typeof known?.text === "string") {
      keys[which] = { text: known.text, source: known.source === GIVEN ? GIVEN : OFFERED };
      if (told !== known.text) keys[which].changed = told;
    } else {
      keys[which] = { text: told, source: OFFERED };
    }
  }
  write(NAME, keys);
  keys.ledger.statements = Array.isArray(offered.statements) ? offered.statements.map(String) : [];
  return keys;
}

/** A key's text with the statements by which others follow it: each is signed by both of its keys, so any server may tell them. */
export const withStatements = (key) => [key.text, ...key.statements].join("\n");

/** Uses a key that the reader gives; an empty one goes back to what the server offers. */
export function use(which, text) {
  const kept = read(NAME, {});
  if (text.trim() === "") delete kept[which];
  else kept[which] = { text: text.trim(), source: GIVEN };
  write(NAME, kept);
}

export const isGiven = (key) => key.source === GIVEN;
export const nameOf = (key) => key.text.split("+")[0];
