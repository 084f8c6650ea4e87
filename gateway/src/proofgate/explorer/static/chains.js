// Each shard as the chain of its logs, the newest on top.
import { el } from "./dom.js";
import { count, logName, moment, plural, shortLog } from "./words.js";

const shardOf = (origin) => String(origin).split("/").at(-2) ?? "";

/** Logs by shard and name, from entries in their order. */
function logsOf(entries) {
  const shards = new Map();
  for (const entry of entries) {
    const shard = shardOf(entry.origin);
    if (!shards.has(shard)) shards.set(shard, new Map());
    const logs = shards.get(shard);
    const name = logName(entry.origin);
    if (!logs.has(name)) logs.set(name, { name, predecessor: entry.predecessor, told: [] });
    logs.get(name).told.push(entry);
  }
  return shards;
}

/** The first, the newest and the last head that was told of a log, and its removal. */
function stages(told) {
  const last = (kind) => told.filter((entry) => entry.kind === kind).at(-1);
  return [told.find((entry) => entry.kind === "open"), last("head"), last("end"), last("removed")].filter(Boolean);
}

const STATES = new Map([
  ["end", "ended"],
  ["removed", "removed after its retention"],
]);

function log({ name, predecessor, told }, before) {
  const state = STATES.get(told.at(-1).kind);
  const broken = before && predecessor !== before.name;
  return el(
    "li",
    { class: state ? "ended" : "going" },
    el("code", { class: "log", title: name }, shortLog(name)),
    el(
      "ol",
      { class: "stages", "aria-label": `Heads of ${name}` },
      stages(told).map((entry) =>
        el("li", {}, `${entry.kind} `, el("a", { href: `#/tree/${entry.index}`, title: moment(entry.time) }, count(entry.size))),
      ),
    ),
    el("span", { class: "state" }, state ?? "active"),
    broken ? el("span", { class: "state" }, predecessor ? `follows ${shortLog(String(predecessor))}` : "starts a chain") : null,
  );
}

/** A section for each shard that has a head or an entry. */
export function chains(heads, entries) {
  const shards = logsOf(entries);
  for (const head of heads) if (!shards.has(String(head.shard))) shards.set(String(head.shard), new Map());
  if (shards.size === 0) {
    return el("p", { class: "empty" }, "No shard has a signed log yet. A log is listed once the auditor has accepted its first checkpoint.");
  }
  const named = [...shards].sort(([one], [other]) => one.localeCompare(other, "en", { numeric: true }));
  return el(
    "div",
    { class: "shards" },
    named.map(([shard, logs]) => {
      const head = heads.find((head) => String(head.shard) === shard);
      const known = [...logs.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
      const drawn = known.map((one, at) => log(one, known[at - 1])).reverse();
      return el(
        "section",
        { class: "shard" },
        el("h3", {}, `Shard ${shard}`),
        head
          ? el("p", { class: "hint" }, `${plural(head.logs, "log")}; the newest has ${plural(head.size, "record")}, accepted ${moment(head.time)}${head.lag > 0 ? "; more records are still to be verified" : ""}`)
          : el("p", { class: "hint" }, "This shard has no accepted tree head."),
        el("ol", { class: "chain" }, drawn),
      );
    }),
  );
}
