// A link that signs its reader in once. Its token is behind the #, which no request, log or referrer has.
import { el } from "./dom.js";
import { signInOnce } from "./reader.js";
import { again } from "./sign-in.js";

const EXPLAINED = new Map([
  ["link_not_valid", "This link was used before, or it is older than ten minutes. `proofgate sign-in-link` prints a new link."],
  ["not_found", "This auditor accepts no sign-in links: it was started without --sign-in-links."],
]);

export async function view(token) {
  // Before anything else: the address and the history keep no token.
  history.replaceState(null, "", "#/");
  try {
    await signInOnce(token);
  } catch (error) {
    return [
      el("h1", { tabindex: "-1" }, "Sign in"),
      el("p", { class: "verdict bad", role: "status" }, EXPLAINED.get(error.code) ?? `${error.message} (${error.code})`),
      el("p", {}, el("a", { href: "#/exchanges" }, "Sign in with a key")),
    ];
  }
  again();
  return [];
}
