// Elements from data. What others wrote becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/** An element with attributes, listeners under `on`, and children: nodes, texts, lists of them, or null. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A button that does something in the page; while that runs it cannot be pressed again. */
export function button(text, act, attributes = {}) {
  const node = el("button", { type: "button", ...attributes }, text);
  node.addEventListener("click", async () => {
    if (node.getAttribute("aria-disabled") === "true") return;
    node.setAttribute("aria-disabled", "true");
    try {
      await act(node);
    } finally {
      node.removeAttribute("aria-disabled");
    }
  });
  return node;
}

/** A field with its label, and a hint that is read with it. */
export function field(id, label, control, hint) {
  control.id = id;
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  return el(
    "div",
    { class: "field" },
    el("label", { for: id }, label),
    control,
    hint ? el("p", { id: `${id}-hint`, class: "hint" }, hint) : null,
  );
}

/** A table; `foot` is a row of totals. */
export function table(caption, columns, rows, kind = null, foot = null) {
  // On a narrow screen the rows are blocks; the roles say that it still is a table.
  const head = columns.map(({ name, numeric }) =>
    el("th", { scope: "col", role: "columnheader", class: numeric ? "number" : null }, name),
  );
  const body = rows.map((cells) =>
    el(
      "tr",
      { role: "row" },
      cells.map((cell, at) =>
        el("td", { role: "cell", class: columns[at].numeric ? "number" : null, "data-name": columns[at].name }, cell),
      ),
    ),
  );
  return el(
    "table",
    { role: "table", class: kind },
    el("caption", {}, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)),
    el("tbody", { role: "rowgroup" }, body),
    foot === null
      ? null
      : el("tfoot", { role: "rowgroup" }, el("tr", { role: "row" }, foot.map((cell, at) => el("td", { role: "cell", class: columns[at].numeric ? "number" : null, "data-name": columns[at].name }, cell)))),
  );
}

/** Hands bytes or a text to the reader as a file. */
export function download(name, content) {
  const url = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
