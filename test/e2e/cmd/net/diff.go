package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func compare(a, b string) int { return cmp.Compare(a, b) }

// line is one value of an answer. The kind is its place without names and numbers of elements.
type line struct{ place, kind, value string }

// flatten returns all values of a message, each with its place. Elements of lists are called by what names them.
func flatten(m protoreflect.Message, place, kind string, out []line) []line {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if !m.Has(field) {
			continue
		}
		at, of := join(place, string(field.Name())), join(kind, string(field.Name()))
		if !field.IsList() {
			out = flattenValue(field, m.Get(field), at, of, out)
			continue
		}
		list, seen := m.Get(field).List(), map[string]int{}
		for j := range list.Len() {
			name := nameOf(field, list.Get(j))
			if seen[name]++; seen[name] > 1 {
				name = fmt.Sprintf("%s#%d", name, seen[name])
			}
			out = flattenValue(field, list.Get(j), at+"["+name+"]", of+"[]", out)
		}
	}
	if unknown := m.GetUnknown(); len(unknown) > 0 {
		out = append(out, line{join(place, "UNKNOWN"), join(kind, "UNKNOWN"), fmt.Sprintf("%d bytes", len(unknown))})
	}
	return out
}

func flattenValue(field protoreflect.FieldDescriptor, value protoreflect.Value, at, of string, out []line) []line {
	switch field.Kind() {
	case protoreflect.MessageKind:
		before := len(out)
		if out = flatten(value.Message(), at, of, out); len(out) == before {
			out = append(out, line{at, of, "{}"})
		}
		return out
	case protoreflect.EnumKind:
		if v := field.Enum().Values().ByNumber(value.Enum()); v != nil {
			return append(out, line{at, of, string(v.Name())})
		}
		return append(out, line{at, of, fmt.Sprint(value.Enum())})
	case protoreflect.BytesKind:
		return append(out, line{at, of, fmt.Sprintf("%x", value.Bytes())})
	case protoreflect.StringKind:
		return append(out, line{at, of, fmt.Sprintf("%q", value.String())})
	default:
		return append(out, line{at, of, value.String()})
	}
}

func join(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}

// namers are the fields that name an element of a list, the best first.
var namers = []protoreflect.Name{"node_group", "node", "title", "name", "class_name", "slot", "key", "owner", "pod",
	"group", "option", "reason", "message", "at_seconds", "namespace", "id", "phase", "kind", "resource"}

func nameOf(field protoreflect.FieldDescriptor, value protoreflect.Value) string {
	if field.Kind() != protoreflect.MessageKind {
		if field.Kind() == protoreflect.BytesKind {
			return ""
		}
		return value.String()
	}
	m := value.Message()
	for _, name := range namers {
		f := m.Descriptor().Fields().ByName(name)
		if f == nil || f.IsList() || f.Kind() == protoreflect.MessageKind || f.Kind() == protoreflect.BytesKind ||
			!m.Has(f) {
			continue
		}
		text := m.Get(f).String()
		if labels := m.Descriptor().Fields().ByName("labels"); labels != nil && labels.IsList() &&
			labels.Kind() == protoreflect.StringKind {
			for i := range m.Get(labels).List().Len() {
				text += "," + m.Get(labels).List().Get(i).String()
			}
		}
		return text
	}
	return ""
}

// difference is one value that differs.
type difference struct{ kind, text string }

// differences compares two answers of a method.
func (c *call) differences() ([]difference, error) {
	method := c.GetMethod()[strings.LastIndex(c.GetMethod(), "/")+1:]
	if now := status.Convert(c.Err); int32(now.Code()) != c.GetCode() {
		text := fmt.Sprintf("code %d -> %d %s", c.GetCode(), now.Code(), now.Message())
		return []difference{{method + ": code", text}}, nil
	}
	if c.Same {
		return nil, nil
	}
	recorded := c.Answer.ProtoReflect().New()
	if err := proto.Unmarshal(c.GetResponse(), recorded.Interface()); err != nil {
		return nil, err
	}
	before, after := flatten(recorded, "", "", nil), flatten(c.Answer.ProtoReflect(), "", "", nil)
	var out []difference
	add := func(sign string, l line, text string) {
		out = append(out, difference{method + ": " + sign + " " + l.kind, sign + " " + l.place + " " + text})
	}
	values := map[string]string{}
	for _, l := range after {
		values[l.place] = l.value
	}
	was := map[string]bool{}
	for _, l := range before {
		was[l.place] = true
		if now, ok := values[l.place]; !ok {
			add("-", l, l.value)
		} else if now != l.value {
			add("~", l, l.value+" -> "+now)
		}
	}
	for _, l := range after {
		if !was[l.place] {
			add("+", l, l.value)
		}
	}
	if len(out) == 0 {
		out = append(out, difference{method + ": order of elements", "the same values in another order"})
	}
	return out, nil
}

// decisions are the parts of answers from which the others follow, the most telling first.
var decisions = []string{"code", "fleet.actions", "growth", "take_back", "scale_down.remove", "moves",
	"replacement.moves", "digest", "scale_up", "nodes", "groups", "options", "slack", "classes", "size", "remove",
	"scale_down.brake", "scale_down", "replacement", "fleet.groups", "fleet.held", "fleet", "report", "state"}

// mainKind returns the kind of the part of an answer from which the others follow, so that each answer counts once.
func mainKind(all []difference) string {
	rank := func(d difference) int {
		path := strings.TrimLeft(d.kind[strings.Index(d.kind, ": ")+2:], "+-~ ")
		for i, part := range decisions {
			if path == part || strings.HasPrefix(path, part+".") || strings.HasPrefix(path, part+"[") {
				return i
			}
		}
		return len(decisions)
	}
	return slices.MinFunc(all, func(a, b difference) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), compare(a.kind, b.kind))
	}).kind
}
