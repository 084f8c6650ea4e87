// Files of what the filters show: columns for a spreadsheet, or records with their proofs, signed.
import { button, download, el } from "./dom.js";
import { query } from "./filters.js";
import { readFile, signedIn } from "./reader.js";
import { again } from "./sign-in.js";
import { failure } from "./steps.js";
import { plural } from "./words.js";

const FORMATS = [
  ["csv", "Download CSV"],
  ["bundle", "Download signed bundle"],
];

export function exports(filters) {
  const said = el("div", { role: "status" });
  const save = async (format) => {
    said.replaceChildren(el("p", { class: "hint" }, "The auditor is creating the file…"));
    try {
      const { name, blob, exchanges, cutSince } = await readFile(`v1/export?${query(filters, { format })}`);
      download(name, blob);
      said.replaceChildren(
        cutSince
          ? el("p", { class: "caveat" }, `The file is not complete: it has the newest ${plural(exchanges, "exchange")}, from ${cutSince} on. For older exchanges, choose earlier days, or use `, el("code", {}, "proofgate audit export"), " on the auditor's host.")
          : el("p", { class: "hint" }, `${plural(exchanges, "exchange")}. The auditor recorded that you exported them.${format === "bundle" ? " Check it with “proofgate audit verify-export”." : ""}`),
      );
    } catch (error) {
      if (signedIn() === null) return again();
      said.replaceChildren(failure(error));
    }
  };
  return el("div", { class: "exports" }, el("p", { class: "actions" }, FORMATS.map(([format, label]) => button(label, () => save(format)))), said);
}
