// The stages of one exchange as a waterfall: a table whose bars say again what its numbers do.
import { el, svg, table } from "./dom.js";
import { stagesOf } from "./stages.js";
import { millis } from "./words.js";

const WIDTH = 1000;
/** A moment is drawn as wide as this. */
const MOMENT = 6;

function bar({ from, to, failed }, end) {
  const scale = end > 0 ? (WIDTH - MOMENT) / end : 0;
  const shape =
    from === null
      ? null
      : svg("rect", { x: from * scale, y: 3, width: Math.max(MOMENT, ((to ?? end) - from) * scale), height: 14, rx: 2 });
  return svg(
    "svg",
    { class: `bar${failed ? " failed" : ""}${to === null ? " endless" : ""}`, viewBox: `0 0 ${WIDTH} 20`, preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("path", { d: `M0 19.5H${WIDTH}` }),
    shape,
  );
}

function rules({ rules: named, verdict }) {
  if (verdict === null) return "";
  return [verdict, named.length > 0 ? [": ", named.map((rule, at) => [at > 0 ? ", " : "", el("code", {}, rule)])] : null];
}

/** The stages that these records tell; what cannot be drawn is said. */
export function waterfall(records) {
  const stages = stagesOf(records);
  if (stages.length === 0) return el("p", { class: "empty" }, "No record shows how this exchange began, so nothing can be drawn.");
  // An exchange that was found cut ends, in time, when it was found, which may be days later: it is not drawn to scale.
  const cut = records.some(({ kind }) => kind === "aborted");
  const drawn = cut ? stages.slice(0, -1) : stages;
  const end = Math.max(0, ...drawn.map(({ from, to }) => Math.max(from ?? 0, to ?? 0)));
  const rows = stages.map((stage) => [
    stage.name,
    stage.from === null ? "" : `+${millis(stage.from)}`,
    stage.to === null || stage.to === stage.from ? "" : millis(stage.to - stage.from),
    drawn.includes(stage) ? bar(stage, end) : "",
    stage.text,
    rules(stage),
  ]);
  const columns = [{ name: "Stage" }, { name: "At", numeric: true }, { name: "Took", numeric: true }, { name: "Timeline" }, { name: "Details" }, { name: "Rules" }];
  return el(
    "div",
    { class: "waterfall" },
    table("Stages, by the times in the records", columns, rows),
    el("p", { class: "hint" }, "An attempt is drawn from the record before it to the record after it. This includes the gateway's own time, for example for rules, which records do not separate."),
  );
}
