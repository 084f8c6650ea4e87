// What filters can choose from: the names that the index has, asked for once in a while.
import { read, signedIn } from "./reader.js";

const MILLISECONDS = 60_000;
const KINDS = { tenant: "tenants", model: "models", provider: "providers", outcome: "outcomes", rule: "rules", key: "keys", key_name: "key_names", session: "sessions", agent: "agents" };
let kept = { at: 0, reader: null, names: {} };

/** Names by the field that they are for; none where they cannot be had, since a filter works without. */
export async function namesOf() {
  const reader = JSON.stringify(signedIn());
  if (kept.reader === reader && Date.now() - kept.at < MILLISECONDS) return kept.names;
  let told = {};
  try {
    told = await read("v1/names");
  } catch {
    // The view itself says what is wrong.
  }
  const names = Object.fromEntries(Object.entries(KINDS).map(([field, kind]) => [field, Array.isArray(told[kind]) ? told[kind].map(String) : []]));
  kept = { at: Date.now(), reader, names };
  return names;
}
