// One session: what it asked, in order, with the pauses between.
import { el, svg, table } from "./dom.js";
import { addressOf } from "./exchange.js";
import { query } from "./filters.js";
import { dollars } from "./money.js";
import { read } from "./reader.js";
import { forReader, missing } from "./sign-in.js";
import { verdictOf } from "./verdicts.js";
import { count, duration, keyText, millis, plural } from "./words.js";

const MOST = 1000;
const WIDTH = 1000;
const MOMENT = 6;

export const addressOfSession = (id) => `#/session/${encodeURIComponent(id)}`;

export async function view(argument) {
  const id = decodeURIComponent(argument);
  const intro = "The requests of one session, oldest first. The client names the session.";
  return forReader("Session", intro, async () => {
    const { exchanges, next, index } = await read(`v1/exchanges?${query({ session: id, limit: MOST })}`);
    const heading = el("h2", {}, el("code", {}, id));
    if (exchanges.length === 0) return [heading, missing(index), el("p", { class: "empty" }, "The index has no request of this session that you may see. ", el("a", { href: "#/exchanges" }, "See all exchanges"), ".")];
    return [heading, missing(index), next ? el("p", { class: "caveat" }, `These are the first ${count(MOST)} requests; the session has more. `, el("a", { href: `#/exchanges/${query({ session: id })}` }, "See the newest"), ".") : null, summary(exchanges), timeline(exchanges)];
  });
}

const began = ({ time }) => Date.parse(time) * 1000;
const ended = (one) => began(one) + (one.duration_us ?? 0);

function summary(exchanges) {
  const sum = (of) => exchanges.reduce((all, one) => all + (of(one) ?? 0), 0);
  const figure = (name, value) => el("div", { class: "figure" }, el("dt", {}, name), el("dd", {}, value));
  const names = (of) => [...new Set(exchanges.map(of).filter(Boolean))].join(", ") || "not known";
  const from = began(exchanges[0]);
  return el(
    "dl",
    { class: "figures" },
    figure("Requests", count(exchanges.length)),
    figure("Took", duration((Math.max(...exchanges.map(ended)) - from) / 1e6)),
    figure("Denied by policy", count(exchanges.filter(({ verdict }) => verdict === "denied" || verdict === "blocked").length)),
    figure("Tokens", count(sum((one) => (one.prompt_tokens ?? 0) + (one.completion_tokens ?? 0)))),
    figure("Cost", dollars(sum(({ cost_nanodollars: cost }) => cost))),
    figure("Tenant", names(({ tenant }) => tenant)),
    figure("Key", names(keyText)),
  );
}

function timeline(exchanges) {
  const from = began(exchanges[0]);
  const end = Math.max(...exchanges.map(ended)) - from;
  const rows = exchanges.map((one, at) => {
    const pause = at > 0 ? began(one) - ended(exchanges[at - 1]) : 0;
    return [
      String(one.time).replace("T", " ").slice(0, 19),
      pause > 1e6 ? `after ${duration(pause / 1e6)}` : "",
      bar(began(one) - from, one.duration_us ?? 0, end, one.outcome !== "complete"),
      one.duration_us === null ? "" : millis(one.duration_us),
      one.agent ?? "",
      one.model ?? "",
      verdictOf(one),
      one.prompt_tokens === null ? "" : count(one.prompt_tokens + (one.completion_tokens ?? 0)),
      dollars(one.cost_nanodollars) ?? "",
      el("a", { href: addressOf(one.id) }, `Request ${at + 1}`),
    ];
  });
  const columns = [{ name: "Time (UTC)" }, { name: "Pause" }, { name: "Timeline" }, { name: "Took", numeric: true }, { name: "Agent" }, { name: "Model" }, { name: "Verdict" }, { name: "Tokens", numeric: true }, { name: "Cost", numeric: true }, { name: "Exchange" }];
  return el("section", { class: "waterfall", "aria-label": "Timeline" }, table(`${plural(exchanges.length, "request")}, oldest first`, columns, rows, "wide"));
}

function bar(from, took, end, failed) {
  const scale = end > 0 ? (WIDTH - MOMENT) / end : 0;
  return svg(
    "svg",
    { class: `bar${failed ? " failed" : ""}`, viewBox: `0 0 ${WIDTH} 20`, preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("path", { d: `M0 19.5H${WIDTH}` }),
    svg("rect", { x: from * scale, y: 3, width: Math.max(MOMENT, took * scale), height: 14, rx: 2 }),
  );
}
