// Exchanges, the newest first: what comes is followed while the page is looked at, and older ones page by page.
import { button, el, table } from "./dom.js";
import { addressOf } from "./exchange.js";
import { exports } from "./export.js";
import { form, fromAddress, query } from "./filters.js";
import { dollars } from "./money.js";
import { namesOf } from "./names.js";
import { read, signedIn } from "./reader.js";
import { again, forReader, missing } from "./sign-in.js";
import { addressOfSession } from "./session.js";
import { failure } from "./steps.js";
import { verdictOf } from "./verdicts.js";
import { count, plural } from "./words.js";

const PAGE = 50;
/** Between two questions of a page that follows. The auditor accepts what was signed about once a second. */
const SECONDS = 5;
const COLUMNS = [
  ...[{ name: "Time (UTC)" }, { name: "Tenant" }, { name: "Key" }, { name: "Model" }, { name: "Provider" }, { name: "Verdict" }, { name: "Outcome" }],
  ...[{ name: "Status", numeric: true }, { name: "Tokens", numeric: true }, { name: "Cost", numeric: true }, { name: "Session" }, { name: "Exchange" }],
];

export async function view(argument) {
  const filters = fromAddress(argument);
  const intro = "Exchanges in the auditor's index. Open one to verify its records in your browser.";
  return forReader("Exchanges", intro, async ({ tenant }) => {
    const [names, shown] = await Promise.all([namesOf(), list(filters)]);
    return [form("exchanges", filters, tenant, { names }), shown];
  });
}

async function list(filters) {
  const first = await page(filters, {});
  const rows = el("div", {});
  const said = el("p", { class: "hint", role: "status" });
  const older = el("p", { class: "actions" });
  const section = el("section", { "aria-label": "Exchanges" });
  let known = new Set(first.exchanges.map(({ id }) => id));
  let following = true;

  const show = ({ exchanges, next, index }) => {
    const came = exchanges.filter(({ id }) => !known.has(id));
    known = new Set(exchanges.map(({ id }) => id));
    // Whoever goes through the table by keyboard stays on the same exchange.
    const at = rows.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    rows.replaceChildren(...[missing(index), exchanges.length > 0 ? tableOf(exchanges, came) : empty(filters)].filter(Boolean));
    if (at !== null) [...rows.querySelectorAll("a")].find((link) => link.getAttribute("href") === at)?.focus();
    older.replaceChildren(...(next ? [button("Older exchanges", () => goOn(next))] : []));
    return came.length;
  };
  const goOn = async (after) => {
    turn(false);
    try {
      const { exchanges, next } = await page(filters, { after });
      rows.append(tableOf(exchanges, []));
      older.replaceChildren(...(next ? [button("Older exchanges", () => goOn(next))] : []));
    } catch (error) {
      older.replaceChildren(failure(error));
    }
  };
  const turn = (on) => {
    following = on;
    pause.setAttribute("aria-pressed", String(on));
    said.textContent = on ? `Following: the page queries the auditor every ${SECONDS} seconds, and the auditor records one read per minute.` : "Paused.";
  };
  const pause = el("button", { type: "button", "aria-pressed": "true", on: { click: () => turn(!following) } }, "Follow");

  const look = async () => {
    // Another view stands there now: nobody looks at this one any more.
    if (!section.isConnected) return;
    if (following && !document.hidden) {
      try {
        const came = show(await page(filters, { watch: "true" }));
        if (following && came > 0) said.textContent = `${plural(came, "new exchange")} at ${new Date().toISOString().slice(11, 19)} UTC.`;
      } catch (error) {
        if (signedIn() === null) {
          again();
          return;
        }
        turn(false);
        said.replaceChildren(`Paused: ${error.message} `, el("code", {}, String(error.code)));
      }
    }
    setTimeout(look, SECONDS * 1000);
  };
  show(first);
  turn(true);
  section.append(el("p", { class: "actions" }, pause, said), exports(filters), rows, older);
  setTimeout(look, SECONDS * 1000);
  return section;
}

const page = (filters, more) => read(`v1/exchanges?${query(filters, { limit: PAGE, newest: "true", ...more })}`);

function empty(filters) {
  return el(
    "p",
    { class: "empty" },
    Object.keys(filters).length > 0
      ? "No exchange matches these filters. Clear one of them, or choose a longer time."
      : "The index has no exchange yet. An exchange appears some seconds after its request, when the auditor has accepted a checkpoint that covers it.",
  );
}

function tableOf(exchanges, came) {
  const fresh = new Set(came.map(({ id }) => id));
  const rows = exchanges.map((one) => [
    el("span", { class: fresh.has(one.id) ? "fresh" : null }, String(one.time).replace("T", " ").slice(0, 23)),
    one.tenant ?? "no tenant",
    one.key_name ?? one.key ?? "",
    one.model ?? "",
    one.providers.join(", "),
    verdictOf(one),
    one.outcome,
    one.status ?? "",
    one.prompt_tokens === null ? "" : `${count(one.prompt_tokens)}+${count(one.completion_tokens ?? 0)}`,
    dollars(one.cost_nanodollars) ?? "",
    one.session ? el("a", { href: addressOfSession(one.session), title: one.session }, shortId(one.session)) : "",
    el("a", { href: addressOf(one.id) }, shortId(one.id)),
  ]);
  const denied = exchanges.filter(({ verdict }) => verdict === "denied" || verdict === "blocked").length;
  const cost = exchanges.reduce((sum, one) => sum + (Number(one.cost_nanodollars) || 0), 0);
  return table(`Newest first; shown: ${plural(exchanges.length, "exchange")}, ${count(denied)} denied by policy, ${dollars(cost)}`, COLUMNS, rows, "wide");
}

const shortId = (id) => (id.length > 16 ? `${id.slice(0, 4)}…${id.slice(-6)}` : id);
