// The signed-in reader: by a key that this tab keeps until it is closed, and sends in a header only; or by a cookie of a
// sign-in with an OpenID provider or a one-time link, which no script can read.
import { AuditorError, ask } from "./auditor.js";

const NAME = "proofgate-explorer/reader";
const COOKIE = { credentials: "same-origin" };
const COOKIE_POST = { ...COOKIE, method: "POST" };
let memory = null;
let ended = null;

/** Who is signed in: `{key, name, tenant}`, the key null for a cookie, the tenant null for a reader of all; null for nobody. */
export function signedIn() {
  try {
    return memory ?? JSON.parse(sessionStorage.getItem(NAME));
  } catch {
    return memory;
  }
}

export async function signOut() {
  const byCookie = signedIn()?.key === null;
  forget();
  if (byCookie) await ask("v1/sign-out", {}, COOKIE_POST).catch(() => null);
}

function forget() {
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
  keep({ key, name: String(name), tenant: tenant === null ? null : String(tenant) });
}

/** Signs in with the token of a link that works once. Rejects with AuditorError for one that is used or too old. */
export async function signInOnce(token) {
  const { name, tenant } = await (await ask("v1/sign-in/once", headersOf(token), COOKIE_POST)).json();
  forget();
  keep({ key: null, name: String(name), tenant: tenant === null ? null : String(tenant) });
}

/** Whether the auditor answers readers, and an OpenID provider signs them in. A reader with its cookie is signed in. */
export async function signInWays() {
  const { readers, oidc, reader } = await (await ask("v1/sign-in", {}, COOKIE)).json();
  if (reader && signedIn() === null) keep({ key: null, name: String(reader.name), tenant: reader.tenant === null ? null : String(reader.tenant) });
  return { readers: readers !== false, oidc: oidc === true };
}

function keep(reader) {
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
  return whileSignedIn(reader, () => json(path, reader.key));
}

async function whileSignedIn(reader, asked) {
  try {
    return await asked();
  } catch (error) {
    if (endsSignIn(error.code)) {
      ended = reader.key === null ? "session" : "key";
      forget();
    }
    throw error;
  }
}

/** What has ended a sign-in since this was last asked: `"session"`, `"key"` or null. */
export function lastEnded() {
  const what = ended;
  ended = null;
  return what;
}

/** A file that the auditor makes for whoever is signed in: `{name, blob, exchanges, cutSince}`. */
export async function readFile(path) {
  const reader = signedIn();
  if (reader === null) throw new AuditorError("not_a_reader", "no reader is signed in");
  const answer = await whileSignedIn(reader, () => request(path, reader.key));
  const name = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1] ?? "export";
  return {
    name,
    blob: await answer.blob(),
    exchanges: Number(answer.headers.get("proofgate-exchanges") ?? 0),
    cutSince: answer.headers.get("proofgate-cut-since"),
  };
}

async function json(path, key) {
  return (await request(path, key)).json();
}

const request = (path, key) => (key === null ? ask(path, {}, COOKIE) : ask(path, headersOf(key)));

function headersOf(key) {
  // What a header cannot carry is no key, and would not leave the browser as a request.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new AuditorError("not_a_reader", "a key contains only ASCII characters, and no spaces");
  return { Authorization: `Bearer ${key}` };
}
