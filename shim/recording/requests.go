package recording

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"loadline.dev/shim/api/loadlinev1"
)

// Requests hold the last request of each method, so that what the next one has too is not written again: most of the
// bytes of a loop are price lists.
type Requests map[string]fields

// fields are the bytes of each field of a message, by number.
type fields map[protowire.Number][]byte

// Shorten leaves out of a request the fields that the one before it of its method has too.
func (r Requests) Shorten(call *loadlinev1.RecordedCall) error {
	all, err := split(call.GetRequest())
	if err != nil {
		return err
	}
	last := r[call.GetMethod()]
	r[call.GetMethod()] = all
	call.Request, call.SameFields = nil, nil
	for _, number := range slices.Sorted(maps.Keys(all)) {
		if former, has := last[number]; has && bytes.Equal(former, all[number]) {
			call.SameFields = append(call.SameFields, int32(number))
		} else {
			call.Request = append(call.Request, all[number]...)
		}
	}
	return nil
}

// Complete puts back what Shorten left out.
func (r Requests) Complete(call *loadlinev1.RecordedCall) error {
	all, err := split(call.GetRequest())
	if err != nil {
		return err
	}
	last := r[call.GetMethod()]
	before := int32(0)
	for _, number := range call.GetSameFields() {
		former, has := last[protowire.Number(number)]
		_, twice := all[protowire.Number(number)]
		switch {
		case !has:
			return fmt.Errorf("same_fields: no call of this method before it has field %d", number)
		case twice || number <= before:
			return fmt.Errorf("same_fields: field %d is there already", number)
		}
		before = number
		all[protowire.Number(number)] = former
		call.Request = append(call.Request, former...)
	}
	r[call.GetMethod()], call.SameFields = all, nil
	return nil
}

var errNoMessage = errors.New("request: not a message")

// split returns copies of the fields of a message.
func split(message []byte) (fields, error) {
	out := fields{}
	for len(message) > 0 {
		number, _, size := protowire.ConsumeField(message)
		if size < 0 {
			return nil, errNoMessage
		}
		out[number], message = append(out[number], message[:size]...), message[size:]
	}
	return out, nil
}
