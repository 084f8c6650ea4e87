// The form in which a reader signs in, and who is signed in.
import { button, el, field } from "./dom.js";
import { lastEnded, signIn, signInWays, signOut, signedIn } from "./reader.js";
import { plural } from "./words.js";

/** Shows the view again, with what has changed. */
export const again = () => dispatchEvent(new HashChangeEvent("hashchange"));

const NO_OIDC = { readers: true, oidc: false };
const EXPLAINED = new Map([
  ["not_a_reader", "This key belongs to no reader. API keys of the gateway are not valid here."],
  ["reader_expired", "This key has expired. Ask the auditor's administrator for a new one."],
  [
    "not_found",
    "This auditor serves no readers: it has no index, or no readers are configured. Set spec.auditor.index with readersSecretRef or oidc in a manifest, or --index with --readers on the command line.",
  ],
  ["readers_unusable", "The file with the readers is invalid. The auditor's administrator has to fix it."],
]);
const ENDED = {
  session: "Your session has ended. Sign in again.",
  key: "You were signed out: this key is no longer valid, or it has expired.",
};
const NOT_VALID = "The auditor does not accept the response of your organisation's sign-in. Ask the auditor's administrator to compare its settings with the provider's.";
const NOT_SIGNED_IN = new Map([
  ["no_reader_group", "Your account is in none of the groups that may read here. Ask the auditor's administrator for access, or sign in with another account."],
  ["state_differs", "The response does not belong to the sign-in that this browser started. Sign in again."],
  ["sign_in_expired", "The sign-in took too long. Sign in again."],
  ["provider_refused", "Your organisation did not sign you in. Sign in again, or ask its administrator."],
  ["issuer_differs", NOT_VALID],
  ["id_token_invalid", NOT_VALID],
  ["provider_unusable", "The auditor cannot use your organisation's sign-in now. Try again later, or ask the auditor's administrator."],
  ["busy", "Too many sign-ins are in progress. Try again in a moment."],
]);

/** Why a sign-in with an OpenID provider failed, by the code of the refusal, and the form to try again. */
export async function notSignedIn(code) {
  const why = NOT_SIGNED_IN.get(code);
  return [
    el("h1", { tabindex: "-1" }, "You are not signed in"),
    why ? el("p", { class: "verdict bad" }, `${why} `, el("code", {}, code)) : null,
    ...form(await signInWays().catch(() => NO_OIDC), "", () => {
      location.hash = "#/";
    }),
  ];
}

/**
 * A view for a reader: the form while nobody is signed in; else who is, and what `content` makes. `otherwise` stands in
 * for the form of an auditor that answers no readers.
 */
export async function forReader(title, intro, content, otherwise = null) {
  const head = [el("h1", { tabindex: "-1" }, title), el("p", {}, intro)];
  const ways = signedIn() === null ? await signInWays().catch(() => NO_OIDC) : NO_OIDC;
  if (signedIn() === null) return [...head, ...(otherwise !== null && !ways.readers ? [otherwise] : form(ways, ENDED[lastEnded()]))];
  try {
    return [...head, bar(), ...(await content(signedIn()))];
  } catch (error) {
    if (signedIn() === null) return [...head, ...form(await signInWays().catch(() => NO_OIDC), ENDED[lastEnded()])];
    throw error;
  }
}

/** That something may be missing, by what an answer says of the index; null when nothing is. */
export function missing(index) {
  if (index?.code) return el("p", { class: "caveat" }, "The index has stopped, and newer exchanges are missing: ", el("code", {}, String(index.code)));
  return index?.behind > 0 ? el("p", { class: "caveat" }, `The index is behind: it still has to read ${plural(index.behind, "record")}.`) : null;
}

function bar() {
  const { name, tenant } = signedIn();
  return el(
    "p",
    { class: "signed-in" },
    "Signed in as ",
    el("strong", {}, name),
    tenant === null ? ", who sees all tenants. " : `, who sees only ${tenant}. `,
    "Each read is recorded by the auditor. ",
    button("Sign out", async () => {
      await signOut();
      again();
    }),
  );
}

function form({ oidc }, told = "", done = again) {
  const input = el("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const said = el("p", { class: "verdict bad", role: "status" }, told);
  const enter = async (event) => {
    event.preventDefault();
    said.textContent = "";
    try {
      await signIn(input.value.trim());
      done();
    } catch (error) {
      said.textContent = EXPLAINED.get(error.code) ?? `${error.message} (${error.code})`;
      input.focus();
    }
  };
  const keyForm = el(
    "form",
    { class: "sign-in", on: { submit: enter } },
    field("reader-key", "Your reader key", input, "This tab stores it until you close the tab or sign out. It is never part of a URL."),
    el("button", { type: "submit", class: "primary" }, "Sign in"),
    said,
  );
  // The provider sends the browser back to the page.
  return [oidc ? el("p", {}, el("a", { class: "primary", href: new URL("../oidc/login", import.meta.url).href }, "Sign in with your organisation")) : null, oidc ? el("p", { class: "hint" }, "Or with a key:") : null, keyForm];
}
