"""Checks that a page is readable and usable without a mouse: landmarks, names, contrast (WCAG 2.2, level AA)."""

from __future__ import annotations

from e2e.browser import Browser

_SCRIPT = r"""
const failed = [];
const visible = (node) => node.checkVisibility() && node.getClientRects().length > 0;

for (const [tag, least, most] of [["main", 1, 1], ["nav", 1, 1], ["header", 1, 1], ["footer", 1, 1], ["h1", 1, 1]]) {
  const count = document.querySelectorAll(tag).length;
  if (count < least || count > most) failed.push(`${count} of ${tag}`);
}
if (!document.documentElement.lang || !document.title) failed.push("no language or title");
let level = 1;
for (const heading of document.querySelectorAll("main :is(h1, h2, h3, h4)")) {
  const own = Number(heading.tagName[1]);
  if (own > level + 1) failed.push(`a heading is left out before ${heading.textContent}`);
  level = own;
}
const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
if (new Set(ids).size !== ids.length) failed.push("an id is there twice");

const named = "a, button, input, textarea, summary, [role=button], [role=group], table";
for (const node of document.querySelectorAll(named)) {
  const name = node.getAttribute("aria-label") || node.labels?.[0]?.textContent || node.caption?.textContent ||
    (node.matches("input, textarea, table") ? "" : node.textContent);
  if (!name?.trim()) failed.push(`no name: ${node.outerHTML.slice(0, 80)}`);
}
for (const node of document.querySelectorAll("[aria-labelledby], [aria-describedby]")) {
  for (const name of ["aria-labelledby", "aria-describedby"]) {
    const id = node.getAttribute(name);
    if (id && !document.getElementById(id)) failed.push(`${name} leads nowhere: ${id}`);
  }
}

// Contrast, by what the browser has computed.
const parse = (text) => {
  const parts = text.match(/[\d.]+/g).map(Number);
  return { rgb: parts.slice(0, 3), alpha: parts[3] ?? 1 };
};
const light = ([r, g, b]) => {
  const part = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const ratio = (one, other) => {
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const ground = (node) => {
  const rect = node.closest("svg.path g")?.querySelector("rect");
  if (rect) return parse(getComputedStyle(rect).fill).rgb;
  for (let at = node; at; at = at.parentElement) {
    const { rgb, alpha } = parse(getComputedStyle(at).backgroundColor);
    if (alpha === 1) return rgb;
  }
  return parse(getComputedStyle(document.body).backgroundColor).rgb;
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let text = walker.nextNode(); text; text = walker.nextNode()) {
  const node = text.parentElement;
  if (!text.data.trim() || !visible(node) || node.closest(".skip")) continue;
  const style = getComputedStyle(node);
  const colour = node.closest("svg") ? style.fill : style.color;
  const found = ratio(parse(colour).rgb, ground(node));
  if (found < 4.5) failed.push(`contrast ${found.toFixed(2)}: ${text.data.trim().slice(0, 40)}`);
}
for (const node of document.querySelectorAll("input, textarea, button")) {
  const found = ratio(parse(getComputedStyle(node).borderTopColor).rgb, ground(node.parentElement));
  if (found < 3) failed.push(`border ${found.toFixed(2)}: ${node.id || node.textContent}`);
}
const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
if (wide > 0) failed.push(`${wide} pixels wider than the window`);
return failed;
"""


def failures(page: Browser) -> list[str]:
    """The faults of the page in the browser; empty if it passes."""
    found: list[str] = page.run(_SCRIPT)
    return found
