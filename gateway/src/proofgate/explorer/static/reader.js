// Who reads exchanges: a key that this tab keeps until it is closed, and that goes nowhere but into a header.
import { AuditorError, ask } from "./auditor.js";

const NAME = "proofgate-explorer/reader";
let memory = null;

/** Who is signed in: `{key, name, tenant}`, the tenant null for a reader of all; null for nobody. */
export function signedIn() {
  try {
    return memory ?? JSON.parse(sessionStorage.getItem(NAME));
  } catch {
    return memory;
  }
}

export function signOut() {
  memory = null;
  try {
    sessionStorage.removeItem(NAME);
  } catch {
    // There is nothing to be removed from.
  }
}

/** Signs in with a key that the auditor knows. Rejects with AuditorError for any other. */
export async function signIn(key) {
  const { name, tenant } = await json("v1/reader", key);
  const reader = { key, name: String(name), tenant: tenant === null ? null : String(tenant) };
  try {
    sessionStorage.setItem(NAME, JSON.stringify(reader));
    memory = null;
  } catch {
    memory = reader;
  }
}

/** Whether no reader is signed in after an answer with this code: the key is no reader's any more, or has expired. */
export const endsSignIn = (code) => code === "not_a_reader" || code === "reader_expired";

/** What the auditor answers whoever is signed in, as JSON. Whose key is taken away is signed out. */
export async function read(path) {
  const reader = signedIn();
  if (reader === null) throw new AuditorError("not_a_reader", "no reader is signed in");
  try {
    return await json(path, reader.key);
  } catch (error) {
    if (endsSignIn(error.code)) signOut();
    throw error;
  }
}

async function json(path, key) {
  // What a header cannot carry is no key, and would not leave the browser as a request.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new AuditorError("not_a_reader", "a key contains only ASCII characters, and no spaces");
  return (await ask(path, { Authorization: `Bearer ${key}` })).json();
}
