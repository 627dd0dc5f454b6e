package expander

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// fields says which fields of a message are kept: by number, with what is kept of a message in it. Numbers are those of
// k8s.io/api/core/v1, see proto/loadline/k8s/v1/core.proto.
type fields struct {
	of []*fields
	// key, if set, says by its key whether a map entry is kept.
	key func(key string) bool
}

// whole keeps all of a field.
var whole = &fields{}

// keptOfPod is what decides how much a pod asks for. Pods that differ in nothing else are one to a ranking.
var keptOfPod = podFields(&fields{of: []*fields{2: whole}}, nil) // requests

// keptUnderLine is also what decides how a load line counts it: its limits, and its namespace, which may be exempt.
var keptUnderLine = podFields(&fields{of: []*fields{1: whole, 2: whole}}, &fields{of: []*fields{3: whole}})

func podFields(requirements, metadata *fields) *fields {
	container := &fields{of: []*fields{8: requirements, 24: whole}} // resources, restartPolicy
	// (init) containers, overhead, resources.
	spec := &fields{of: []*fields{2: container, 20: container, 32: whole, 40: requirements}}
	return &fields{of: []*fields{1: metadata, 2: spec}}
}

// keptOfNode is what tells the price of a template node, what it offers and how well it suits a cluster.
var keptOfNode = func() *fields {
	metadata := &fields{of: []*fields{1: whole, 11: whole, 12: {key: isPriceAnnotation}}} // name, labels, annotations
	status := &fields{of: []*fields{1: whole, 2: whole}}                                  // capacity, allocatable
	return &fields{of: []*fields{1: metadata, 3: status}}
}()

// isPriceAnnotation leaves out the annotations of others, which may have hundreds of kilobytes.
func isPriceAnnotation(key string) bool {
	return strings.HasPrefix(key, "loadline.dev/") || strings.HasPrefix(key, "cluster-autoscaler/")
}

// prune appends to `out` what is kept of a message. What it keeps keeps its order.
func (f *fields) prune(out, message []byte) ([]byte, error) {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return nil, protowire.ParseError(tag)
		}
		size := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		field := message[:tag+size]
		message = message[tag+size:]
		var kept *fields
		if int(number) < len(f.of) {
			kept = f.of[number]
		}
		switch {
		case kept == nil:
		case kept == whole:
			out = append(out, field...)
		case kind == protowire.BytesType:
			body, _ := protowire.ConsumeBytes(field[tag:])
			var err error
			if out, err = kept.pruneField(out, number, body); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// pruneField appends what is kept of a message in a message, with its tag.
func (f *fields) pruneField(out []byte, number protowire.Number, body []byte) ([]byte, error) {
	if f.key != nil {
		if key, ok := entryKey(body); !ok || !f.key(key) {
			return out, nil
		}
		return protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), body), nil
	}
	out = protowire.AppendTag(out, number, protowire.BytesType)
	start := len(out)
	// Pruning never lengthens, so there is room for the length of the whole body.
	reserved := protowire.SizeVarint(uint64(len(body)))
	out, err := f.prune(append(out, make([]byte, reserved)...), body)
	if err != nil {
		return nil, err
	}
	left := out[start+reserved:]
	// The length is written as short as possible: what was dropped must not show, equal pods have equal bytes.
	length := protowire.SizeVarint(uint64(len(left)))
	protowire.AppendVarint(out[start:start], uint64(len(left)))
	copy(out[start+length:], left)
	return out[:start+length+len(left)], nil
}

// entryKey returns the key of a map entry; false if there is none.
func entryKey(entry []byte) (string, bool) {
	for len(entry) > 0 {
		number, kind, tag := protowire.ConsumeTag(entry)
		if tag < 0 {
			return "", false
		}
		if number == 1 && kind == protowire.BytesType {
			key, size := protowire.ConsumeString(entry[tag:])
			return key, size >= 0
		}
		size := protowire.ConsumeFieldValue(number, kind, entry[tag:])
		if size < 0 {
			return "", false
		}
		entry = entry[tag+size:]
	}
	return "", false
}
