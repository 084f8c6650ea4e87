"""Bar charts as SVG: horizontal bars with the spread of the measurements, readable on a light and on a dark page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_WIDTH = 760
_LABELS = 150
_VALUES = 110
_ROOM = _WIDTH - _LABELS - _VALUES
_BAR = 14
_GAP = 12
_TOP = 58
_COLOURS = ("#2f6fb2", "#e0912f", "#7a9a3a")
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f } .title { font-weight: 600; font-size: 14px }
.quiet { fill: #57606a } .own { font-weight: 700 } line { stroke: #24292f }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .quiet { fill: #9aa4af } line { stroke: #e6edf3 } }
"""

# A function from a value to a length in pixels.
Scale = Callable[[float], float]


@dataclass(frozen=True)
class Bar:
    """A median with its spread."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """One system, with a bar for each series in which it has a figure."""

    label: str
    bars: Sequence[Bar | None]
    emphasised: bool = False


def bars(
    title: str,
    note: str,
    series: Sequence[str],
    rows: Sequence[Row],
    *,
    form: str = "{:,.0f}",
    logarithmic: bool = False,
) -> str:
    """A chart. `note` says what is measured, and whether less is better.

    All bars share one scale: linear from zero, or logarithmic from the power of ten below the shortest.
    """
    known = [bar for row in rows for bar in row.bars if bar]
    scale = _logarithmic(known) if logarithmic else _linear(known)
    if logarithmic:
        note += "; logarithmic scale"
    parts = [_text(12, 22, title, "title"), _text(12, 42, note, "quiet")]
    y = _TOP
    if len(series) > 1:
        for place, name in enumerate(series):
            x = _LABELS + place * 190
            parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{_COLOURS[place]}"/>')
            parts.append(_text(x + 18, y + 10, name))
        y += 26
    for row in rows:
        middle = y + _BAR * len(row.bars) / 2 + 4
        parts.append(_text(_LABELS - 10, middle, row.label, "own" if row.emphasised else "", "end"))
        for place, bar in enumerate(row.bars):
            if bar:
                parts += _bar(bar, y, scale, _COLOURS[place], form)
            else:
                parts.append(_text(_LABELS + 6, y + 11, "no figure", "quiet"))
            y += _BAR
        y += _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" width="{_WIDTH}" height="{y}" '
        f'role="img" aria-label="{escape(title)}">\n<style>{_STYLE}</style>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _linear(known: Sequence[Bar]) -> Scale:
    top = max((bar.high for bar in known), default=0.0)
    return lambda value: _ROOM * max(value, 0) / top if top > 0 else 0.0


def _logarithmic(known: Sequence[Bar]) -> Scale:
    base = 10 ** math.floor(math.log10(max(min((bar.low for bar in known), default=1.0), 1.0)))
    decades = math.log10(max([base * 10.0, *(bar.high for bar in known)]) / base)
    return lambda value: _ROOM * math.log10(max(value, base) / base) / decades


def _bar(bar: Bar, y: float, scale: Scale, colour: str, form: str) -> list[str]:
    width, low, high = (scale(value) for value in (bar.median, bar.low, bar.high))
    middle = y + (_BAR - 2) / 2
    return [
        f'<rect x="{_LABELS}" y="{y}" width="{max(width, 1):.1f}" height="{_BAR - 2}" fill="{colour}"/>',
        f'<line x1="{_LABELS + low:.1f}" x2="{_LABELS + high:.1f}" y1="{middle}" y2="{middle}"/>',
        _text(_LABELS + max(width, high) + 6, y + 11, form.format(bar.median)),
    ]


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    name = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{name} text-anchor="{anchor}">{escape(text)}</text>'
