# SPDX-License-Identifier: MIT
"""The results as an SVG picture: one bar a row, on a logarithmic scale, from the line that is to be reached to what was
measured; to the right is better. The thin line goes from the worst round to the best. Nothing but text is written."""
import html
import math

import report
import rows

ROW, HEAD, TITLE, LEFT, WIDTH, RIGHT = 22, 54, 26, 200, 420, 330  # pixels
DECADES = 1.6  # to either side of the line
COLOURS = {rows.MET: "#2a7f4f", rows.MISSED: "#b5482a", rows.UNCLEAR: "#8a8a8a"}


def draw(document):
    """One table below the other."""
    parts, top = [], HEAD
    for table in document["tables"]:
        drawn, top = section(table, top)
        parts += drawn
    width = LEFT + WIDTH + RIGHT
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{top}" fill="#ffffff"/>',
        text(12, 22, "nicless beside raw sockets: how far from what is to be reached", size=15),
        text(12, 42, subtitle(document), fill="#555555"), *parts, "</svg>"]) + "\n"


def section(table, top):
    """What is drawn, and where the next one begins."""
    results = [result for result in table["rows"] if "median" in result]
    first = top + TITLE
    end = first + ROW * len(results) + 4
    parts = [text(12, top + 16, report.HEADINGS[table["buffers"]], size=13)]
    for factor in (1 / 32, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 32):
        parts.append(f'<line x1="{x_of(factor):.1f}" y1="{first}" x2="{x_of(factor):.1f}" y2="{end}" '
                     f'stroke="{"#000000" if factor == 1 else "#dddddd"}"/>')
        label = "reach" if factor == 1 else f"{factor:g}x" if factor > 1 else f"1/{1 / factor:g}"
        parts.append(text(x_of(factor), end + 16, label, anchor="middle", fill="#555555"))
    for index, result in enumerate(results):
        parts += bar(result, first + ROW * index)
    return parts, end + 34


def subtitle(document):
    machine = document["machine"]
    return (f"{machine['processor']}, {machine['cores']} cores, Linux {machine['kernel']}; loopback, two processes, "
            f"{document['rounds']} rounds")


def x_of(factor):
    clamped = max(-DECADES, min(DECADES, math.log10(factor) if factor > 0 else -DECADES))
    return LEFT + WIDTH * (clamped + DECADES) / (2 * DECADES)


def score(result, value):
    """How many times better than the reach."""
    sign, limit = result["reach"].split()
    limit = float(limit)
    if sign.startswith("<"):
        return math.inf if value == 0 else limit / value
    return value / limit


def bar(result, top):
    has_peer = result["ratio"] is not None
    value = result["ratio"] if has_peer else result["median"]
    ends = [result["ratio_lowest"], result["ratio_highest"]] if has_peer else [min(result["rounds"]), max(result["rounds"])]
    middle, colour = top + ROW / 2, COLOURS[result["verdict"]]
    at, one = x_of(score(result, value)), x_of(1)
    worst, best = sorted(x_of(score(result, end)) for end in ends)
    return [text(LEFT - 8, middle + 4, result["row"], anchor="end"),
            f'<rect x="{min(at, one):.1f}" y="{top + 5}" width="{max(1, abs(at - one)):.1f}" height="{ROW - 10}" fill="{colour}"/>',
            f'<line x1="{worst:.1f}" y1="{middle}" x2="{best:.1f}" y2="{middle}" stroke="#000000"/>',
            text(LEFT + WIDTH + 10, middle + 4, caption(result, has_peer), fill=colour)]


def caption(result, has_peer):
    measured = f"{result['median']:,.0f}" if result["median"] >= 100 else f"{result['median']:.2f}"
    ratio = f", {result['ratio']:.2f} of the peer's" if has_peer else ""
    return f"{measured} {result['unit']}{ratio} ({result['reach']}): {result['verdict']}"


def text(x, y, content, anchor="start", fill="#000000", size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}">{html.escape(content)}</text>'
