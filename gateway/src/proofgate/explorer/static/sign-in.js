// The form in which a reader signs in, and who is signed in.
import { button, el, field } from "./dom.js";
import { signIn, signOut, signedIn } from "./reader.js";
import { plural } from "./words.js";

/** Shows the view again, with what has changed. */
export const again = () => dispatchEvent(new HashChangeEvent("hashchange"));

const EXPLAINED = new Map([
  ["not_a_reader", "This is the key of no reader. Keys of the gateway are none."],
  ["reader_expired", "This key has expired. Whoever runs the auditor has to give you another one."],
  [
    "not_found",
    "This auditor answers no readers: it keeps no index, or nobody is named who may ask it. In a manifest that is spec.auditor.index with readersSecretRef; on a command line --index with --readers.",
  ],
  ["readers_unusable", "The file that names the readers cannot be used now. Whoever runs the auditor has to mend it."],
]);

/** A view for a reader: the form while nobody is signed in; else who is, and what `content` makes. */
export async function forReader(title, intro, content) {
  const head = [el("h1", { tabindex: "-1" }, title), el("p", {}, intro)];
  if (signedIn() === null) return [...head, form()];
  try {
    return [...head, bar(), ...(await content(signedIn()))];
  } catch (error) {
    if (signedIn() === null) return [...head, form("You were signed out: this key is no reader's any more, or has expired.")];
    throw error;
  }
}

/** That something may be missing, by what an answer says of the index; null when nothing is. */
export function missing(index) {
  if (index?.code) return el("p", { class: "caveat" }, "The index does not go on, and what came since is missing: ", el("code", {}, String(index.code)));
  return index?.behind > 0 ? el("p", { class: "caveat" }, `The index is behind: it has still to read ${plural(index.behind, "record")}.`) : null;
}

function bar() {
  const { name, tenant } = signedIn();
  return el(
    "p",
    { class: "signed-in" },
    "Signed in as ",
    el("strong", {}, name),
    tenant === null ? ", who sees all tenants. " : `, who sees ${tenant} alone. `,
    "Each read is recorded by the auditor. ",
    button("Sign out", () => {
      signOut();
      again();
    }),
  );
}

function form(told = "") {
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
  return el(
    "form",
    { class: "sign-in", on: { submit: enter } },
    field("reader-key", "Your key as a reader", input, "It stays in this tab until you close it or sign out, and is in no address."),
    el("button", { type: "submit", class: "primary" }, "Sign in"),
    said,
  );
}
