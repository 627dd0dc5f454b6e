#!/usr/bin/env python3
"""Draws the pictures of docs/architecture.md from texts: who does what, one step below the other.

  ways.py           writes docs/way-of-*.svg from docs/way-of-*.txt
  ways.py --check   fails if a picture is not what its text gives

A text has a line "title: ...", a line "lane: NAME" for each participant, then the steps in their order: "NAME: text"
for a step of one participant, "NAME > NAME: text" for a message. Lines that begin with # are comments.
"""

import html
import pathlib
import sys
import textwrap

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
LANE, MARGIN, TOP, LINE = 250, 20, 92, 16  # pixels
COLUMNS = 34  # characters of the font below that a box of a lane has room for

STYLE = """
  text { fill: #1b2229; font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
  text.title { font-size: 17px; font-weight: 600; }
  text.head { font-size: 14px; font-weight: 600; text-anchor: middle; }
  text.step { text-anchor: middle; }
  text.message { text-anchor: middle; stroke: #ffffff; stroke-width: 4; paint-order: stroke; }
  .lane { stroke: #c9d1d9; stroke-width: 1.5; }
  .head, .box { stroke: #8a949e; stroke-width: .6; }
  rect.head { fill: #d3e5f0; } rect.box { fill: #fbe3c6; }
  .arrow { stroke: #1c5a9c; stroke-width: 1.5; } polygon { fill: #1c5a9c; }
"""


def parse(name, text):
    """Returns (title, lanes, steps); a step is (from, to or None, text), with positions of lanes."""
    title, lanes, steps = "", [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        who, colon, what = line.partition(": ")
        if not colon or not what:
            raise ValueError(f'{name}:{number}: not "NAME: text": {line}')
        if who == "title":
            title = what
        elif who == "lane":
            lanes.append(what)
        else:
            places = who.split(" > ")
            unknown = [place for place in places if place not in lanes]
            if unknown or len(places) > 2 or len(set(places)) < len(places):
                raise ValueError(f"{name}:{number}: no lane {', '.join(unknown) or who}")
            positions = [lanes.index(place) for place in places] + [None]
            steps.append((positions[0], positions[1], what))
    if not title or not steps:
        raise ValueError(f"{name}: no title or no steps")
    return title, lanes, steps


def middle(lane):
    return MARGIN + lane * LANE + LANE // 2


def words(lines, css, x, y):
    """Lines of text one below the other; y is the baseline of the first one."""
    return "".join(f'<text class="{css}" x="{x}" y="{y + i * LINE}">{html.escape(line)}</text>\n'
                   for i, line in enumerate(lines))


def own_step(lane, text, top):
    """A box on the line of a lane. Returns the markup and its height."""
    lines = textwrap.wrap(text, COLUMNS)
    height = len(lines) * LINE + 10
    box = f'<rect class="box" x="{middle(lane) - 114}" y="{top}" width="228" height="{height}" rx="4"/>\n'
    return box + words(lines, "step", middle(lane), top + 17), height


def message(start, end, text, top):
    """An arrow from lane to lane, with its text above it. Returns the markup and its height."""
    lines = textwrap.wrap(text, COLUMNS * abs(end - start))
    y = top + len(lines) * LINE + 4
    tip, back = middle(end), 8 if end > start else -8
    arrow = (f'<line class="arrow" x1="{middle(start)}" y1="{y}" x2="{tip - back}" y2="{y}"/>\n'
             f'<polygon points="{tip},{y} {tip - back},{y - 4} {tip - back},{y + 4}"/>\n')
    return arrow + words(lines, "message", (middle(start) + tip) // 2, top + 12), y - top + 4


def picture(name, text):
    title, lanes, steps = parse(name, text)
    body, top = [], TOP
    for start, end, what in steps:
        markup, height = own_step(start, what, top) if end is None else message(start, end, what, top)
        body.append(markup)
        top += height + 12
    width, height = 2 * MARGIN + LANE * len(lanes), top + MARGIN
    heads = [f'<line class="lane" x1="{middle(i)}" y1="76" x2="{middle(i)}" y2="{top}"/>\n'
             f'<rect class="head" x="{middle(i) - 110}" y="48" width="220" height="28" rx="4"/>\n'
             + words([lane], "head", middle(i), 67) for i, lane in enumerate(lanes)]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">\n'
            f"<style>{STYLE}</style>\n"
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
            f'<text class="title" x="{MARGIN}" y="32">{html.escape(title)}</text>\n'
            + "".join(heads) + "".join(body) + "</svg>\n")


def main(arguments):
    result = 0
    for source in sorted(DOCS.glob("way-of-*.txt")):
        target, drawn = source.with_suffix(".svg"), picture(source.name, source.read_text(encoding="utf-8"))
        if arguments != ["--check"]:
            target.write_text(drawn, encoding="utf-8")
        elif not target.is_file() or target.read_text(encoding="utf-8") != drawn:
            print(f"docs/{target.name} is not what {source.name} gives: python3 tools/ways.py")
            result = 1
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
