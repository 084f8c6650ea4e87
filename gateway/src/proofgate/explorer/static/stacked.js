// Bars over time, one series on the other, drawn by uPlot (uplot.min.js); beside the drawing, the same in words.
import { el, table } from "./dom.js";

const HEIGHT = 150;
const COLOURS = 8;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const zone = (seconds) => new Date(seconds * 1000 + new Date(seconds * 1000).getTimezoneOffset() * 60_000);
/** The day of a moment, or its time where a chart is of hours; UTC. */
const moments = (marks) => {
  const [from, to] = marks.at(-1) - marks[0] < 172_800 ? [11, 16] : [5, 10];
  return marks.map((seconds) => new Date(seconds * 1000).toISOString().slice(from, to));
};

/**
 * A figure. `series` are `{label, values}`, a number for each of `times` (unix seconds) and each `step` long; `shown`
 * writes a number.
 */
export function stacked(title, times, step, series, shown) {
  const sums = series.map(({ values }) => values.reduce((sum, value) => sum + value, 0));
  const total = sums.reduce((sum, value) => sum + value, 0);
  const place = el("div", { class: "plot", role: "img", "aria-label": `${title}: ${shown(total)} in all` });
  if (total > 0) draw(place, times, step, series, shown);
  const of = series.map(({ label }, at) => [swatch(label, at), shown(sums[at])]);
  return el(
    "figure",
    { class: "stacked" },
    el("figcaption", {}, `${title}: `, el("strong", {}, shown(total))),
    total > 0 ? place : el("p", { class: "empty" }, "None in this time range."),
    total > 0 && series.length > 1 ? table(`${title}, in all`, [{ name: "Series" }, { name: "Sum", numeric: true }], of.filter((_, at) => sums[at] > 0), "legend") : null,
  );
}

function swatch(label, at) {
  return el("span", { class: "swatch" }, el("i", { class: `colour-${at % COLOURS}`, "aria-hidden": "true" }), label);
}

function draw(place, times, step, series, shown) {
  // The first series lies at the bottom; what is drawn first lies behind.
  const heights = [];
  series.forEach(({ values }, at) => heights.push(values.map((value, index) => value + (at > 0 ? heights[at - 1][index] : 0))));
  const order = series.map((_, at) => at).reverse();
  const data = [times, ...order.map((at) => heights[at])];
  let plot = null;
  new ResizeObserver(() => {
    const width = Math.floor(place.clientWidth);
    if (width === 0) return;
    if (plot) plot.setSize({ width, height: HEIGHT });
    else plot = new globalThis.uPlot(options(width, step, order, shown), data, place);
  }).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot?.redraw(false, true));
}

function options(width, step, order, shown) {
  const bars = globalThis.uPlot.paths.bars({ size: [0.9, 60], align: 1 });
  const axis = { stroke: () => colour("--quiet"), grid: { stroke: () => colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  return {
    width,
    height: HEIGHT,
    tzDate: zone,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { range: (_, first, last) => [first, last + step] }, y: { range: (_, __, most) => [0, Math.max(most, 1e-9) * 1.05] } },
    axes: [{ ...axis, values: (_, marks) => (marks.length > 0 ? moments(marks) : []) }, { ...axis, size: 64, values: (_, marks) => marks.map(shown) }],
    series: [{}, ...order.map((at) => ({ paths: bars, points: { show: false }, width: 0, fill: () => colour(`--series-${at % COLOURS}`) }))],
  };
}
