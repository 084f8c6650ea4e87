// Values over time, as points joined for each shard. What is an alarm has another shape, and the table beside says it.
import { el, svg } from "./dom.js";
import { plural } from "./words.js";

const WIDTH = 320;
const HEIGHT = 120;
const LEFT = 44;
const RIGHT = 10;
const TOP = 12;
const BOTTOM = 96;

/** The least round number that is not below a value: 1, 2 or 5 times a power of ten. */
export function ceiling(value) {
  if (!(value > 0) || !Number.isFinite(value)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999999) ?? 10 * power;
}

const short = (value) => String(Number(value.toPrecision(3)));
const day = (milliseconds) => new Date(milliseconds).toISOString().slice(5, 16).replace("T", " ");

/** A figure of `points`: `{time, value, shard, alarm}`, times in milliseconds, the oldest first; null of none. */
export function chart(name, unit, points) {
  const drawn = points.filter(({ time, value }) => Number.isFinite(time) && Number.isFinite(value));
  if (drawn.length === 0) return null;
  const [first, last] = [drawn[0].time, drawn.at(-1).time];
  const top = ceiling(Math.max(...drawn.map(({ value }) => value)));
  const x = (time) => (last > first ? LEFT + ((time - first) / (last - first)) * (WIDTH - LEFT - RIGHT) : (LEFT + WIDTH - RIGHT) / 2);
  const y = (value) => BOTTOM - (value / top) * (BOTTOM - TOP);
  const alarms = drawn.filter(({ alarm }) => alarm);
  const values = drawn.map(({ value }) => value);
  const told = `${name}, ${unit}: ${plural(drawn.length, "window")} from ${short(Math.min(...values))} to ${short(Math.max(...values))}, ${plural(alarms.length, "alarm")}`;
  return el(
    "figure",
    {},
    el("figcaption", {}, `${name}, ${unit}`),
    svg(
      "svg",
      { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": told },
      svg("path", { class: "axis", d: `M${LEFT} ${y(top)}H${WIDTH - RIGHT}M${LEFT} ${BOTTOM}H${WIDTH - RIGHT}` }),
      svg("text", { x: LEFT - 6, y: y(top) + 4, "text-anchor": "end" }, short(top)),
      svg("text", { x: LEFT - 6, y: BOTTOM + 4, "text-anchor": "end" }, "0"),
      svg("text", { x: LEFT, y: HEIGHT - 6 }, day(first)),
      last > first ? svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 6, "text-anchor": "end" }, day(last)) : null,
      courses(drawn, x, y),
      drawn.map((point) => mark(point, x(point.time), y(point.value))),
    ),
  );
}

function courses(points, x, y) {
  const shards = [...new Set(points.map(({ shard }) => shard))];
  return shards.map((of) => {
    const own = points.filter(({ shard }) => shard === of);
    return svg("path", { class: "course", d: own.map(({ time, value }, at) => `${at > 0 ? "L" : "M"}${x(time).toFixed(1)} ${y(value).toFixed(1)}`).join("") });
  });
}

function mark({ alarm }, x, y) {
  if (!alarm) return svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: 2.5 });
  return svg("path", { class: "alarm-mark", d: `M${x.toFixed(1)} ${(y - 7).toFixed(1)}l6 11h-12z` });
}
