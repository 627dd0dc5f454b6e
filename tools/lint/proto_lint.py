#!/usr/bin/env python3
"""Checks the .proto files of our own API.

  proto_lint.py FILE...

Every service, method, message, enum, field and enum value carries a comment of its own, directly above it or behind it
on its line. A comment that only says "See X." is none: a reader of the field must learn what it is.
Besides: names in their usual case, the zero value of an enum ends in _UNSPECIFIED, numbers and names are used once
and not when reserved, no maps (their order on the wire is random), no unsigned amounts, each method has a
request and a response of its own.

Files of other packages than loadline.*, and those in proto2, restate what others define, who document it: they need no
comments. Of those in proto2 only numbers, names and maps are checked.
"""

import dataclasses
import re
import sys

IDENTIFIER = r"[A-Za-z_]\w*"
BLOCK = re.compile(rf"(message|enum|service|oneof)\s+({IDENTIFIER})\s*\{{\s*(\}}?)$")
FIELD = re.compile(rf"(?:(repeated|optional|required)\s+)?(map\s*<.*>|[\w.]+)\s+"
                   rf"({IDENTIFIER})\s*=\s*(\d+)\s*(?:\[.*\])?;$")
VALUE = re.compile(rf"({IDENTIFIER})\s*=\s*(-?\w+)\s*(?:\[.*\])?;$")
RPC = re.compile(rf"rpc\s+({IDENTIFIER})\s*\(\s*(stream\s+)?([\w.]+)\s*\)\s*"
                 rf"returns\s*\(\s*(stream\s+)?([\w.]+)\s*\)\s*(?:;|\{{\s*\}})$")
RESERVED = re.compile(r"reserved\s+(.*);$")
REFERENCE = re.compile(r"See [\w.]+\.$")

CAMEL = re.compile(r"[A-Z][A-Za-z0-9]*$")
SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*$")
UPPER_SNAKE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$")


@dataclasses.dataclass
class Block:
    kind: str
    name: str
    elements: list = dataclasses.field(default_factory=list)  # (line, name, number) of fields or values
    reserved_numbers: list = dataclasses.field(default_factory=list)
    reserved_names: set = dataclasses.field(default_factory=set)


class Linter:
    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.problems = []
        self.stack = []
        self.comment = ""  # the lines of comments directly above
        self.proto3 = re.search(r'^syntax\s*=\s*"proto3";', text, re.M) is not None
        self.documented = self.proto3 and re.search(r"^package\s+loadline\.", text, re.M) is not None

    def problem(self, line, text):
        self.problems.append(f"{self.path}:{line}: {text}")

    def run(self):
        for number, line in enumerate(self.text.splitlines(), start=1):
            self.line(number, line.strip())
        return self.problems

    def line(self, number, line):
        code, _, behind = line.partition("//")
        code, behind = code.strip(), behind.strip()
        if not code:
            self.comment = f"{self.comment} {behind}".strip() if behind else ""
            return
        comment, self.comment = behind or self.comment, ""
        commented = bool(comment) and not REFERENCE.match(comment)
        if block := BLOCK.match(code):
            self.open(number, *block.groups(), commented)
        elif code == "}":
            self.close()
        elif self.stack:
            self.element(number, code, commented)

    def open(self, number, kind, name, closed, commented):
        if not CAMEL.match(name) and kind != "oneof":
            self.problem(number, f"{kind} {name} is not CamelCase")
        if not commented and self.documented:
            self.problem(number, f"{kind} {name} has no comment of its own")
        if not closed:
            self.stack.append(Block(kind, name))

    def close(self):
        block = self.stack.pop()
        # Reserved lines may be anywhere in a block, so they are compared with it at its end.
        for line, name, value in block.elements:
            if name in block.reserved_names:
                self.problem(line, f"{block.name}.{name}: the name is reserved")
            if any(low <= value <= high for low, high in block.reserved_numbers):
                self.problem(line, f"{block.name}.{name}: number {value} is reserved")

    def element(self, number, code, commented):
        block = self.stack[-1]
        if reserved := RESERVED.match(code):
            self.reserve(block, reserved.group(1))
        elif code.startswith("option "):
            pass
        elif block.kind == "service":
            self.method(number, block, code, commented)
        elif block.kind == "enum":
            self.value(number, block, code, commented)
        else:
            # Fields of a oneof share numbers and names with the message around it.
            owner = next(b for b in reversed(self.stack) if b.kind == "message")
            self.field(number, owner, code, commented)

    @staticmethod
    def reserve(block, items):
        for item in (i.strip() for i in items.split(",")):
            if item.startswith('"'):
                block.reserved_names.add(item.strip('"'))
            else:
                low, _, high = item.partition(" to ")
                block.reserved_numbers.append((int(low), float("inf") if high == "max" else int(high or low)))

    def once(self, number, block, name, value):
        for _, other, taken in block.elements:
            if other == name:
                self.problem(number, f"{block.name}.{name}: the name is taken")
            if taken == value:
                self.problem(number, f"{block.name}.{name}: number {value} is that of {other}")
        block.elements.append((number, name, value))

    def field(self, number, block, code, commented):
        match = FIELD.match(code)
        if match is None:
            self.problem(number, f"cannot read this line of {block.name}: {code}")
            return
        _, kind, name, value = match.groups()
        self.once(number, block, name, int(value))
        if kind.startswith("map"):
            self.problem(number, f"{block.name}.{name} is a map: a sorted repeated message has one order")
        if self.documented and not commented:
            self.problem(number, f"field {block.name}.{name} has no comment of its own")
        if not self.proto3:
            return
        if not SNAKE.match(name):
            self.problem(number, f"{block.name}.{name} is not snake_case")
        if kind in ("uint32", "uint64"):
            self.problem(number, f"{block.name}.{name} is unsigned: amounts are signed, hashes are fixed64")

    def value(self, number, block, code, commented):
        match = VALUE.match(code)
        if match is None:
            self.problem(number, f"cannot read this line of {block.name}: {code}")
            return
        name, value = match.group(1), int(match.group(2), 0)
        first = not block.elements
        self.once(number, block, name, value)
        if not UPPER_SNAKE.match(name):
            self.problem(number, f"{block.name}.{name} is not UPPER_SNAKE_CASE")
        if first and (value != 0 or not name.endswith("_UNSPECIFIED")):
            self.problem(number, f"{block.name}: the first value is 0 and ends in _UNSPECIFIED")
        if not commented and self.documented:
            self.problem(number, f"value {block.name}.{name} has no comment of its own")

    def method(self, number, block, code, commented):
        match = RPC.match(code)
        if match is None:
            self.problem(number, f"cannot read this line of {block.name}: {code}")
            return
        name, _, request, _, response = match.groups()
        if not CAMEL.match(name):
            self.problem(number, f"rpc {block.name}.{name} is not CamelCase")
        if (request, response) != (f"{name}Request", f"{name}Response"):
            self.problem(number, f"rpc {block.name}.{name} takes {name}Request and returns {name}Response")
        if not commented and self.documented:
            self.problem(number, f"rpc {block.name}.{name} has no comment of its own")


def lint(path, text):
    """Returns the problems of one file, each as "path:line: text"."""
    return Linter(path, text).run()


def main(paths):
    problems = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            problems += lint(path, file.read())
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
