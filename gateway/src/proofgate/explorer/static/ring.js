// The ring of tenants and shards, drawn from what a table beside it says. Arrow keys go round it.
import { el, svg, table } from "./dom.js";
import { query } from "./filters.js";
import { count, plural } from "./words.js";

const SIZE = 440;
const MIDDLE = SIZE / 2;
const RADIUS = 168;
const INNER = 82;
const NUMBERS = RADIUS + 20;
/** More are not told apart. */
const MOST = 60;

/** Where something stands that is a part of the way round, clockwise from the top. */
function at(part, radius) {
  const angle = part * 2 * Math.PI;
  return { x: MIDDLE + radius * Math.sin(angle), y: MIDDLE - radius * Math.cos(angle) };
}

/** Who serves a tenant: who recorded it last, else whose the ring makes it. */
export function home({ recorded, ring }) {
  const shard = recorded === null ? ring.shard : Number(recorded.shard);
  const away = recorded !== null && ring.shard !== null && String(ring.shard) !== String(recorded.shard);
  return { shard, known: recorded !== null, away, required: away && String(ring.required) === String(recorded.shard) };
}

/** Parts of the way round for numbers beside the points, none nearer to the next than can be read. */
export function apart(parts) {
  if (parts.length < 2) return parts;
  const least = Math.min(0.016, 1 / parts.length);
  const gaps = parts.map((part, index) => (index + 1 < parts.length ? parts[index + 1] : parts[0] + 1) - part);
  const first = (gaps.indexOf(Math.max(...gaps)) + 1) % parts.length;
  const placed = [...parts];
  for (let step = 1; step < parts.length; step += 1) {
    const own = (first + step) % parts.length;
    const before = placed[(own + parts.length - 1) % parts.length];
    const ahead = parts[own] + (own < first ? 1 : 0);
    placed[own] = Math.max(ahead, before + least);
  }
  return placed.map((part) => part % 1);
}

function percent(part) {
  return `${(part * 100).toFixed(1)} %`;
}

function words({ tenant, ring, recorded }) {
  const { shard, known, away, required } = home({ ring, recorded });
  const served = known ? `shard ${shard} recorded it last` : shard === null ? "no shard is running" : `shard ${shard} would serve it`;
  return `${tenant}, at ${percent(ring.at)}: ${served}${away ? `, the ring assigns shard ${ring.shard}` : ""}${required ? " (assigned by affinity “Required”)" : ""}`;
}

/** The ring, and the same as a table. */
export function ring(tenants, shards) {
  const all = tenants.filter(({ ring: place }) => Number.isFinite(place?.at)).map((of, index) => ({ ...of, number: index + 1 }));
  const drawn = all.slice(0, MOST).sort((one, other) => one.ring.at - other.ring.at);
  const names = [...new Set([...shards, ...drawn.map((of) => home(of).shard).filter((shard) => shard !== null)])].sort((one, other) => one - other);
  return el(
    "div",
    { class: "living" },
    names.length > 0 ? drawing(drawn, names, shards) : el("p", { class: "empty" }, "No shard is running, and no shard has records in these windows. The ring has only shards with an open newest log."),
    el(
      "div",
      {},
      listed(all),
      all.length > MOST ? el("p", { class: "hint" }, `The first ${count(MOST)} of ${count(all.length)} are drawn.`) : null,
      el(
        "p",
        { class: "hint" },
        "HAProxy hashes the name of each tenant, and 1600 points of each shard, onto a ring. The shard of the nearest point serves the tenant. This page computes the same ring for the shards with an open newest log. A placement, an affinity “Required”, or a failed shard overrides the ring. Another shard has the records in this case.",
      ),
    ),
  );
}

function listed(tenants) {
  const columns = [{ name: "No.", numeric: true }, { name: "Tenant" }, { name: "On the ring", numeric: true }, { name: "Ring's shard", numeric: true }, { name: "Recorded last by" }];
  const rows = tenants.map(({ tenant, number, ring: place, recorded }) => [
    count(number),
    tenant,
    percent(place.at),
    place.shard === null ? "none" : String(place.shard),
    recorded === null ? "none in these windows" : [`shard ${recorded.shard}`, other(home({ ring: place, recorded })), el("small", {}, ` ${String(recorded.time).replace("T", " ").slice(0, 19)}`)],
  ]);
  return table("Tenants and their shards", columns, rows);
}

/** That the ring does not decide, and what may. */
function other({ away, required }) {
  if (!away) return null;
  return required ? " (assigned by affinity “Required”)" : el("strong", {}, " (another)");
}

function drawing(tenants, names, live) {
  const places = new Map(names.map((shard, index) => [shard, at(index / names.length, names.length > 1 ? INNER : 0)]));
  const numbers = apart(tenants.map(({ ring: place }) => place.at));
  const lines = tenants.map((of) => line(of, places));
  const points = tenants.map((of, index) => point(of, numbers[index], index === 0));
  const full = el("p", { class: "full" });
  const picture = svg(
    "svg",
    { class: "ring", viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": `${plural(tenants.length, "tenant")} on a ring of ${plural(live.length, "shard")}` },
    svg("circle", { class: "round", cx: MIDDLE, cy: MIDDLE, r: RADIUS }),
    lines,
    names.map((shard) => box(shard, places.get(shard), names.length, live.includes(shard))),
    points,
  );
  const choose = (index) => {
    [points, lines].forEach((nodes) => nodes.forEach((node, other) => node?.classList.toggle("chosen", other === index)));
    points.forEach((node, other) => node.setAttribute("tabindex", other === index ? 0 : -1));
    full.replaceChildren(words(tenants[index]));
  };
  points.forEach((node, index) => {
    node.addEventListener("focus", () => choose(index));
    node.addEventListener("click", () => node.focus());
    node.addEventListener("keydown", (event) => {
      const last = points.length - 1;
      const to = { ArrowRight: index + 1, ArrowDown: index + 1, ArrowLeft: index - 1, ArrowUp: index - 1, Home: 0, End: last }[event.key];
      if (to !== undefined) {
        event.preventDefault();
        points[(to + points.length) % points.length].focus();
      } else if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        location.hash = `#/exchanges/${query({ tenant: tenants[index].tenant })}`;
      }
    });
  });
  if (tenants.length > 0) choose(0);
  return el("div", { class: "drawing" }, picture, full, el("p", { class: "hint" }, "Use the arrow keys to move around the ring and Enter to show a tenant's exchanges. A dashed line is computed only: no record in these windows confirms it."));
}

function line(of, places) {
  const { shard, known } = home(of);
  const to = places.get(shard);
  if (!to) return null;
  const from = at(of.ring.at, RADIUS);
  return svg("path", { class: known ? "lives" : "lives guessed", d: `M${from.x.toFixed(1)} ${from.y.toFixed(1)}L${to.x.toFixed(1)} ${to.y.toFixed(1)}` });
}

function point(of, beside, first) {
  const { x, y } = at(of.ring.at, RADIUS);
  const label = at(beside, NUMBERS);
  return svg(
    "g",
    { class: "tenant", role: "button", tabindex: first ? 0 : -1, "aria-label": `${of.number}. ${words(of)}. Show its exchanges.` },
    svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: 6 }),
    svg("text", { x: label.x.toFixed(1), y: (label.y + 4).toFixed(1), "text-anchor": "middle" }, String(of.number)),
  );
}

function box(shard, { x, y }, among, live) {
  const width = among > 16 ? 20 : 58;
  return svg(
    "g",
    { class: live ? "shard" : "shard ended" },
    svg("rect", { x: x - width / 2, y: y - 12, width, height: 24, rx: 5 }),
    svg("text", { x, y: y + 4, "text-anchor": "middle" }, among > 16 ? String(shard) : `shard ${shard}`),
  );
}
