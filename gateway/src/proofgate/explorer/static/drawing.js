// The path of an entry, drawn from the leaf at the bottom to the root at the top. Arrow keys go along it.
import { el, svg, table } from "./dom.js";
import { shortHash } from "./words.js";

const WIDTH = 320;
const ROW = 58;
const BOX = { width: 92, height: 28 };
const MIDDLE = WIDTH / 2;
const SIDE = { left: BOX.width / 2 + 2, right: WIDTH - BOX.width / 2 - 2 };

/** The nodes of the path, the leaf first: `{role, hash, x, y}`. */
function layout(answer) {
  const height = (answer.path.length + 1) * ROW + 24;
  const row = (level) => height - 34 - level * ROW;
  const nodes = [{ role: "leaf", name: `Leaf ${answer.index}`, hash: answer.leaf, x: MIDDLE, y: row(0) }];
  answer.path.forEach(({ sibling, left, node }, level) => {
    const side = left ? "left" : "right";
    const beside = { role: "sibling", name: `Sibling on the ${side}, level ${level}`, hash: sibling, x: SIDE[side], y: row(level) };
    const last = level + 1 === answer.path.length;
    const above = { role: last ? "root" : "node", name: last ? "Root" : `Node, level ${level + 1}`, hash: node, x: MIDDLE, y: row(level + 1) };
    nodes.push(beside, above);
  });
  if (answer.path.length === 0) nodes[0] = { ...nodes[0], role: "root", name: "Leaf 0, the root" };
  return { nodes, height };
}

function lines(nodes) {
  const drawn = [];
  for (let at = 0; at + 2 < nodes.length; at += 2) {
    const [own, beside, above] = nodes.slice(at, at + 3);
    const middle = (own.y + above.y) / 2;
    drawn.push(
      svg("path", { class: "beside", d: `M${beside.x} ${beside.y - 14}V${middle}H${above.x}` }),
      svg("path", { class: "own", d: `M${own.x} ${own.y - 14}V${above.y + 14}` }),
    );
  }
  return drawn;
}

function box({ role, name, hash, x, y }, first) {
  return svg(
    "g",
    { class: `box ${role}`, role: "button", tabindex: first ? 0 : -1, "aria-label": `${name}: ${hash}. Copy it.` },
    svg("rect", { x: x - BOX.width / 2, y: y - 14, width: BOX.width, height: BOX.height, rx: 5 }),
    svg("text", { x, y: y + 4, "text-anchor": "middle" }, shortHash(hash)),
  );
}

/** The drawing with the hash in full of what is chosen, and the same path as a table. */
export function drawing(answer) {
  const { nodes, height } = layout(answer);
  const boxes = nodes.map((node, at) => box(node, at === 0));
  const full = el("p", { class: "full" });
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${height}`, class: answer.ok ? "path" : "path refuted", role: "group", "aria-label": `The path of entry ${answer.index} to the root` },
    lines(nodes),
    boxes,
  );

  function choose(at) {
    boxes.forEach((box, other) => box.setAttribute("tabindex", other === at ? 0 : -1));
    boxes.forEach((box, other) => box.classList.toggle("chosen", other === at));
    full.replaceChildren(`${nodes[at].name} `, el("code", {}, nodes[at].hash));
  }
  async function copy(at) {
    try {
      await navigator.clipboard.writeText(nodes[at].hash);
      full.append(" copied");
    } catch {
      // Only pages of https and of this machine may: the hash can be selected.
      full.append(" cannot be copied automatically: select it");
    }
  }
  boxes.forEach((box, at) => {
    box.addEventListener("focus", () => choose(at));
    box.addEventListener("click", () => {
      box.focus();
      copy(at);
    });
    box.addEventListener("keydown", (event) => {
      const to = { ArrowUp: at + 1, ArrowRight: at + 1, ArrowDown: at - 1, ArrowLeft: at - 1, Home: 0, End: boxes.length - 1 }[event.key];
      if (to !== undefined && boxes[to]) {
        event.preventDefault();
        boxes[to].focus();
      } else if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        copy(at);
      }
    });
  });
  choose(0);
  const rows = nodes.map(({ name, hash }) => [name, el("code", { class: "hash" }, hash)]).reverse();
  const columns = [{ name: "Node" }, { name: "Hash, base64 of SHA-256" }];
  return el(
    "div",
    { class: "drawing" },
    picture,
    full,
    el("p", { class: "hint" }, "Use the arrow keys to move along the path and Enter to copy a hash."),
    el("details", {}, el("summary", {}, "The path as a table"), table("From the root to the leaf", columns, rows)),
  );
}
