#!/usr/bin/env python3
"""Makes the picture of the README from the page that `make demo` writes.

  readme_picture.py build/demo/placement.html docs/placement.svg

Takes the histograms and the heat maps of one resource out of the page and lays them out as one SVG file.
"""

import html.parser
import re
import sys

RESOURCE = "memory"
COLUMN, GAP, MARGIN = 470, 24, 20
CELL, PITCH, CELLS_PER_ROW = 12, 15, 30

STYLE = """
  svg { background: #ffffff; }
  text { fill: #1b2229; font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
  text.title { font-size: 17px; font-weight: 600; }
  text.head { font-size: 14px; font-weight: 600; }
  text.soft { fill: #55606b; }
  .histogram text { font-size: 17px; }
  .grid { stroke: #c9d1d9; }
  rect { stroke: #8a949e; stroke-width: .6; }
  .load { stroke: #1b2229; stroke-width: 2.5; }
  .p95 { stroke: #1b2229; stroke-width: 1.5; stroke-dasharray: 6 3; }
  .max { stroke: #1b2229; stroke-width: 1.5; stroke-dasharray: 1.5 3; }
  text.load, text.p95, text.max { stroke: #ffffff; stroke-width: 4; stroke-dasharray: none; paint-order: stroke; }
  .s0 { fill: #1c5a9c; } .s1 { fill: #4a8cc4; } .s2 { fill: #93c0de; } .s3 { fill: #d3e5f0; } .s4 { fill: #fbe3c6; }
  .s5 { fill: #f6b871; } .s6 { fill: #e2842c; } .s7 { fill: #b3560d; } .s8 { fill: #743304; } .none { fill: #ffffff; }
"""


class Page(html.parser.HTMLParser):
    """Collects, of the section of one resource, the drawings of each placement and the cells of each map."""

    def __init__(self, resource):
        super().__init__()
        self.resource = resource
        self.path = []
        self.heading = ""
        self.caption = ""
        self.drawings = []  # (placement, (width, height), markup)
        self.maps = []  # (placement, [classes of a cell])
        self.scale = []  # (class, label)

    def here(self):
        return self.heading == self.resource

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        classes = (values.get("class") or "").split()
        if tag not in ("meta", "br", "line", "rect"):
            self.path.append((tag, classes))
        if tag == "h2":
            self.heading = ""
        elif tag == "figcaption":
            self.caption = ""
        if not self.here():
            return
        if tag == "svg":
            _, _, width, height = values["viewbox"].split()
            self.drawings.append([self.caption, (float(width), float(height)), ""])
        elif tag in ("line", "rect", "text") and self.inside("svg"):
            opening = self.get_starttag_text()
            self.drawings[-1][2] += opening if tag == "text" else opening.rstrip("/>") + "/>"
        elif tag == "div" and "cells" in classes:
            self.maps.append((self.caption, []))
        elif tag == "i" and self.inside("div", "cells"):
            self.maps[-1][1].append(classes)
        elif tag == "i" and self.inside("div", "legend"):
            self.scale.append([classes[0], ""])

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag):
        if tag in ("line", "rect"):
            return
        if tag == "text" and self.here() and self.inside("svg"):
            self.drawings[-1][2] += "</text>\n"
        while self.path and self.path.pop()[0] != tag:
            pass

    def handle_data(self, data):
        tag = self.path[-1][0] if self.path else ""
        if tag == "h2":
            self.heading += data.strip()
        elif tag == "figcaption":
            self.caption += data.strip()
        elif tag == "text" and self.here():
            self.drawings[-1][2] += html.escape(data)
        elif tag == "span" and self.here() and self.scale and self.inside("div", "legend"):
            self.scale[-1][1] += data.strip()

    def inside(self, tag, name=None):
        return any(t == tag and (name is None or name in classes) for t, classes in self.path)


def histogram(drawing, left, top):
    _, (width, height), markup = drawing
    scale = COLUMN / width
    transform = f"translate({left} {top}) scale({scale:.4f})"
    return f'<g class="histogram" transform="{transform}">\n{markup}</g>\n', height * scale


def heat_map(cells, left, top):
    parts = []
    for i, classes in enumerate(cells):
        x, y = left + i % CELLS_PER_ROW * PITCH, top + i // CELLS_PER_ROW * PITCH
        parts.append(f'<rect class="{classes[0]}" x="{x}" y="{y}" width="{CELL}" height="{CELL}" rx="2"/>')
    rows = -(-len(cells) // CELLS_PER_ROW)
    return "\n".join(parts) + "\n", rows * PITCH


def legend(scale, left, top):
    parts = []
    for class_name, label in scale:
        parts.append(f'<rect class="{class_name}" x="{left}" y="{top}" width="16" height="{CELL}" rx="2"/>'
                     f'<text x="{left + 21}" y="{top + 10}">{html.escape(label)}</text>')
        left += 40 + 7 * len(label)
    return "\n".join(parts) + "\n"


def picture(page):
    body = [f'<text class="title" x="{MARGIN}" y="{MARGIN + 12}">{page.resource}: what the pods of a node may use, '
            f'over what it offers (limits / allocatable)</text>\n']
    top = MARGIN + 40
    columns = [MARGIN + i * (COLUMN + GAP) for i in range(len(page.drawings))]
    bottom = top
    for left, drawing, (_, cells) in zip(columns, page.drawings, page.maps):
        body.append(f'<text class="head" x="{left}" y="{top}">{html.escape(drawing[0])}, {len(cells)} nodes</text>\n')
        markup, height = histogram(drawing, left, top + 8)
        body.append(markup)
        markup, map_height = heat_map(cells, left, top + 24 + height)
        body.append(markup)
        bottom = max(bottom, top + 24 + height + map_height)
    body.append(legend(page.scale, MARGIN, bottom + 10))
    width, height = columns[-1] + COLUMN + MARGIN, bottom + 10 + CELL + MARGIN
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" width="{width}">\n'
            f"<style>{STYLE}</style>\n"
            f'<rect x="0" y="0" width="{width}" height="{height:.0f}" fill="#ffffff" style="stroke:none"/>\n'
            + "".join(body) + "</svg>\n")


def main(source, target):
    page = Page(RESOURCE)
    with open(source, encoding="utf-8") as file:
        page.feed(re.sub(r"<title>.*?</title>", "", file.read()))
    if not page.drawings or len(page.drawings) != len(page.maps):
        sys.exit(f"{source}: no histograms and heat maps of {RESOURCE}")
    with open(target, "w", encoding="utf-8") as file:
        file.write(picture(page))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
