// The form in which a reader signs in, and who is signed in.
import { button, el, field } from "./dom.js";
import { signIn, signInWays, signOut, signedIn } from "./reader.js";
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

/**
 * A view for a reader: the form while nobody is signed in; else who is, and what `content` makes. `otherwise` stands in
 * for the form of an auditor that answers no readers.
 */
export async function forReader(title, intro, content, otherwise = null) {
  const head = [el("h1", { tabindex: "-1" }, title), el("p", {}, intro)];
  const ways = signedIn() === null ? await signInWays().catch(() => NO_OIDC) : NO_OIDC;
  if (signedIn() === null) return [...head, ...(otherwise !== null && !ways.readers ? [otherwise] : form(ways))];
  try {
    return [...head, bar(), ...(await content(signedIn()))];
  } catch (error) {
    if (signedIn() === null) return [...head, ...form(await signInWays().catch(() => NO_OIDC), "You were signed out: this key is no longer valid, or it has expired.")];
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

function form({ oidc }, told = "") {
  const input = el("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const said = el("p", { class: "verdict bad", role: "status" }, told);
  const enter = async (event) => {
    event.preventDefault();
    said.textContent = "";
    try {
      await signIn(input.value.trim());
      again();
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
