#!/usr/bin/env python3
"""Holds proto/loadline/v1 against what the last release had: package v1 is frozen.

  proto_compat.py           holds fields with number, type and label, values of enums, and methods against a release
  proto_compat.py --record  writes proto/released-v1.txt anew; run it for a release

A release may add to the package. It removes, renumbers, renames and retypes nothing: names of methods are those of the
C ABI and of recordings, and names of fields and values are those of JSON.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASED = ROOT / "proto/released-v1.txt"
# Numbers of FieldDescriptorProto.Type and Label.
TYPES = {1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32", 8: "bool",
         9: "string", 11: "message", 12: "bytes", 13: "uint32", 14: "enum", 15: "sfixed32", 16: "sfixed64",
         17: "sint32", 18: "sint64"}
LABELS = {1: "", 2: "required ", 3: "repeated "}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Yields number and value of the fields of a serialized message of google/protobuf/descriptor.proto."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)  # the number, or the length of what follows
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        yield tag >> 3, value


def get(data, number, default=b""):
    return next((value for n, value in fields(data) if n == number), default)


def text(data, number):
    return get(data, number).decode()


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def field_line(scope, field):
    kind = TYPES[get(field, 5)]
    name = text(field, 6).lstrip(".") or kind
    optional = "optional " if get(field, 17, 0) else ""
    one_of = "oneof " if get(field, 9, None) is not None and not optional else ""
    return f"field {scope}.{text(field, 1)} = {get(field, 3)}: {one_of}{optional}{LABELS[get(field, 4)]}{name}"


def message_lines(scope, message):
    name = f"{scope}.{text(message, 1)}"
    yield f"message {name}"
    for number, value in fields(message):
        if number == 2:
            yield field_line(name, value)
        elif number == 3:
            yield from message_lines(name, value)
        elif number == 4:
            yield from enum_lines(name, value)


def enum_lines(scope, enum):
    name = f"{scope}.{text(enum, 1)}"
    for number, value in fields(enum):
        if number == 2:
            yield f"value {name}.{text(value, 1)} = {signed(get(value, 2, 0))}"


def service_lines(scope, service):
    name = f"{scope}.{text(service, 1)}"
    for number, value in fields(service):
        if number == 2:
            stream = ["stream " if get(value, n, 0) else "" for n in (5, 6)]
            yield (f"method /{name}/{text(value, 1)}: {stream[0]}{text(value, 2)[1:]} -> "
                   f"{stream[1]}{text(value, 3)[1:]}")


def elements(root):
    """Returns a line for each element of the package, sorted."""
    files = sorted(path.relative_to(root / "proto") for path in (root / "proto/loadline/v1").glob("*.proto"))
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc", "-I", root / "proto", f"--descriptor_set_out={out.name}", *files], check=True)
        descriptors = pathlib.Path(out.name).read_bytes()
    lines = []
    for _, file in fields(descriptors):
        package = text(file, 2)
        for number, value in fields(file):
            if number == 4:
                lines += message_lines(package, value)
            elif number == 5:
                lines += enum_lines(package, value)
            elif number == 6:
                lines += service_lines(package, value)
    return sorted(lines)


def missing(released, present):
    """Returns the elements of the release that are not there as they were."""
    present = set(present)
    return [line for line in released if line not in present]


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    present = elements(ROOT)
    if parser.parse_args(arguments).record:
        RELEASED.write_text("\n".join(present) + "\n", encoding="utf-8")
        return 0
    gone = missing(RELEASED.read_text(encoding="utf-8").splitlines(), present)
    for line in gone:
        print(f"proto/loadline/v1 is frozen, and no longer has: {line}")
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
