// A receipt, and the bodies that it speaks of, checked in this page.
import { button, el, field } from "./dom.js";
import { addressOf, recordsOf } from "./exchange.js";
import * as keys from "./keys.js";
import { caveat, verdict } from "./steps.js";
import { ask } from "./verifier.js";
import { refusal } from "./wasm.js";
import { waterfall } from "./waterfall.js";

const MOST_BYTES = 256 * 1024 * 1024;

async function bytesOf(input) {
  const file = input.files[0];
  return file ? new Uint8Array(await file.arrayBuffer()) : null;
}

export async function view() {
  const { ledger } = await keys.inUse();
  const file = (accept) => el("input", { type: "file", accept });
  const inputs = { receipt: file(".json,application/json"), request: file(null), response: file(null) };
  const key = el("input", { type: "text", spellcheck: "false", autocomplete: "off", value: ledger.text });
  const result = el("div", { "aria-live": "polite", class: "result" });

  async function check() {
    const chosen = Object.values(inputs).map((input) => input.files[0]);
    if (!chosen[0]) {
      result.replaceChildren(el("p", { class: "verdict bad" }, "Choose a receipt first"));
      inputs.receipt.focus();
      return;
    }
    result.replaceChildren(el("p", {}, "Checking …"));
    const answer = chosen.some((one) => one && one.size > MOST_BYTES)
      ? refusal("too_large", "a file is larger than 256 MiB: use proofgate verify")
      : await ask("receipt", await bytesOf(inputs.receipt), key.value, await bytesOf(inputs.request), await bytesOf(inputs.response)).catch(
          (error) => refusal("unreadable", error.message),
        );
    const source = keys.isGiven(ledger) || key.value.trim() !== ledger.text ? "given" : ledger.source;
    result.replaceChildren(
      verdict(answer, "Verified", "Not verified"),
      caveat({ source }),
      answer.records?.length ? records(answer) : null,
      answer.records?.length ? stages(answer) : null,
      answer.ok ? limits() : null,
    );
  }

  const area = el(
    "div",
    { class: "drop" },
    field("receipt", "Receipt", inputs.receipt, "The response of GET /v1/receipts/{id}. You can also drop the file here."),
    field("request", "Request (optional)", inputs.request, "The exact bytes that were sent."),
    field("response", "Response (optional)", inputs.response, "The exact bytes that were received; for a stream, its whole text."),
    field("receipt-key", "Verifying key of the ledger", key, "Get it from a source that you trust, not from the receipt."),
    button("Check", check, { class: "primary" }),
  );
  area.addEventListener("dragover", (event) => event.preventDefault());
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length === 0) return;
    // Where it is dropped decides what it is; anywhere else it is the receipt.
    const target = Object.values(inputs).find((input) => input.closest(".field").contains(event.target));
    (target ?? inputs.receipt).files = event.dataTransfer.files;
    if (!target || target === inputs.receipt) check();
  });
  return [
    el("h1", { tabindex: "-1" }, "Verify a receipt"),
    el("p", {}, "Nothing is uploaded: your browser reads and verifies the files."),
    area,
    result,
  ];
}

function records({ id, complete, records }) {
  return el(
    "section",
    { "aria-label": "Records" },
    el("p", {}, `The records of ${id}${complete ? "" : ", so far"}:`),
    records.map(({ kind, index, checkpoint, record }) =>
      el(
        "details",
        {},
        el("summary", {}, `${kind}, record ${index} in ${checkpoint.origin}`),
        el("pre", { tabindex: 0, "aria-label": `The ${kind}` }, pretty(record)),
      ),
    ),
  );
}

function stages(answer) {
  return el(
    "section",
    { "aria-labelledby": "stages" },
    el("h2", { id: "stages" }, "Stages"),
    waterfall(recordsOf(answer)),
    el("p", {}, "With a reader's key, see ", el("a", { href: addressOf(String(answer.id)) }, "this exchange in the auditor's index"), "."),
  );
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function limits() {
  return el(
    "p",
    { class: "hint" },
    "Not shown: that the provider sent this response (the gateway signed what it recorded), and that the log still contains it (keep the checkpoint to compare later).",
  );
}
