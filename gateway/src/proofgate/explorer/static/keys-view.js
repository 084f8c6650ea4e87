// Where the reader gives the keys that are trusted.
import { button, el, field } from "./dom.js";
import * as keys from "./keys.js";

/** Shows the view again, with what has changed. */
const again = () => dispatchEvent(new HashChangeEvent("hashchange"));

export async function view() {
  const inUse = await keys.inUse();
  const part = (which, label, hint) => {
    const key = inUse[which];
    const input = el("input", { type: "text", spellcheck: "false", autocomplete: "off", value: key.text });
    return el(
      "div",
      {},
      field(`key-${which}`, label, input, hint),
      el(
        "p",
        { class: key.changed ? "caveat" : "hint" },
        keys.isGiven(key)
          ? key.changed
            ? "You entered this key; this server offers another key."
            : "You entered this key, and this server offers the same key."
          : key.changed
            ? "This server offers another key than on your first visit. The first key is still used. One of the two keys does not belong to the auditor."
            : "This server offers this key. A key from the same server proves nothing by itself.",
      ),
      key.changed ? el("p", {}, "The server offers: ", el("code", {}, key.changed)) : null,
      el(
        "p",
        { class: "actions" },
        button("Use this key", () => {
          keys.use(which, input.value);
          again();
        }),
        button("Use what the server offers", () => {
          keys.use(which, "");
          again();
        }),
      ),
    );
  };
  return [
    el("h1", { tabindex: "-1" }, "Keys"),
    el("p", {}, "This page verifies with these keys. This browser stores them for this server."),
    part("aggregate", "Verifying key of the auditor's log", "Get it from the auditor's administrator, and not through this server."),
    part("ledger", "Verifying key of the ledger", "Get it from the gateway's administrator. Tree heads in entries, and receipts, are verified with it."),
  ];
}
