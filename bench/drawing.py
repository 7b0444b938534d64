"""Charts as SVG, written by hand: no library, and the pictures stay text that a change can be read in."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_COLOURS = ("#9aa5b1", "#3b7dd8", "#7fb3ff", "#e0a030", "#5a9e6f", "#2f7d4f", "#c25b4e", "#8464a8", "#555b66")
_WIDTH, _LEFT, _RIGHT = 860, 110, 30
_BAR, _GAP, _TOP = 30, 16, 84
Points = Sequence[tuple[float, float]]


def _page(height: float, title: str, parts: Sequence[str]) -> str:
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" '
            'font-family="system-ui, sans-serif" font-size="13">',
            f'<rect width="{_WIDTH}" height="{height:.0f}" fill="white"/>',
            f'<text x="16" y="24" font-size="15" font-weight="600">{escape(title)}</text>',
            *parts,
            "</svg>",
            "",
        )
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#333">{escape(text)}</text>'


def stacked(title: str, unit: str, bars: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> str:
    """One horizontal bar for each (name, parts); every bar shows its sum."""
    names = [name for name, _ in bars[0][1]]
    parts, x = [], 16.0
    for name, colour in zip(names, _COLOURS, strict=False):
        parts.append(f'<rect x="{x:.1f}" y="40" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(x + 17, 51, name))
        x += 32 + 7.4 * len(name)
    longest = max(sum(value for _, value in values) for _, values in bars)
    scale = (_WIDTH - _LEFT - _RIGHT - 80) / longest
    for row, (name, values) in enumerate(bars):
        y, x = _TOP + row * (_BAR + _GAP), float(_LEFT)
        parts.append(_text(_LEFT - 10, y + 20, name, "end"))
        for (_, value), colour in zip(values, _COLOURS, strict=False):
            parts.append(f'<rect x="{x:.1f}" y="{y}" width="{value * scale:.2f}" height="{_BAR}" fill="{colour}"/>')
            x += value * scale
        parts.append(_text(x + 8, y + 20, f"{sum(value for _, value in values):.0f} {unit}"))
    return _page(_TOP + len(bars) * (_BAR + _GAP) + 10, title, parts)


def line(title: str, axes: tuple[str, str], points: Points) -> str:
    """Points joined by a line, both axes from 0, each point with its value."""
    bottom, top, right = 330.0, 60.0, float(_WIDTH - _RIGHT - 40)
    widest, highest = max(x for x, _ in points) or 1.0, max(y for _, y in points) * 1.1 or 1.0
    at = [(_LEFT + x / widest * (right - _LEFT), bottom - y / highest * (bottom - top)) for x, y in points]
    parts = [
        f'<path d="M{_LEFT} {top} V{bottom} H{right}" fill="none" stroke="#999"/>',
        f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in at)}" fill="none" stroke="{_COLOURS[1]}" '
        'stroke-width="2"/>',
        _text(right, bottom + 40, axes[0], "end"),
        _text(16, top - 10, axes[1]),
    ]
    last = -1e9
    for (x, y), (px, py) in zip(points, at, strict=True):
        parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4" fill="{_COLOURS[1]}"/>')
        parts.append(_text(px, py - 10, f"{y:.3g}", "middle"))
        if px - last > 52:
            parts.append(_text(px, bottom + 20, f"{x:,.4g}", "middle"))
            last = px
    return _page(bottom + 60, title, parts)
