package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// broken returns the error of an object that does not decode, with the path of the field at fault. Decoders name
// the field of a wrong type, but not that of a malformed quantity or time.
func broken(where string, raw json.RawMessage, into any, err error) error {
	path, cause := locate(raw, reflect.TypeOf(into).Elem())
	if cause == nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return fmt.Errorf("%s: %s: %w", where, path, cause)
}

// locate finds the field that keeps an object from decoding as a value of type t: it decodes the object with one
// field alone, and descends into the first one, by name, that fails. O(fields x depth); only for broken objects.
func locate(raw json.RawMessage, t reflect.Type) (path string, cause error) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // a large whole number has to stay one
	if err := decoder.Decode(&value); err != nil {
		return "", nil
	}
	var steps []any // field names and, for list elements, indices
	for {
		next, child, ok := firstBroken(value, steps, t)
		if !ok {
			break
		}
		steps, value = append(steps, next), child
	}
	if len(steps) == 0 {
		return "", nil
	}
	return pathOf(steps), try(steps, value, t)
}

// firstBroken returns the first field or element of value that fails alone.
func firstBroken(value any, steps []any, t reflect.Type) (step, child any, ok bool) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if try(append(slices.Clip(steps), key), value[key], t) != nil {
				return key, value[key], true
			}
		}
	case []any:
		for i, element := range value {
			if try(append(slices.Clip(steps), i), element, t) != nil {
				return i, element, true
			}
		}
	}
	return nil, nil, false
}

// try decodes an object that holds nothing but `value` at the place that `steps` leads to.
func try(steps []any, value any, t reflect.Type) error {
	for _, step := range slices.Backward(steps) {
		if key, ok := step.(string); ok {
			value = map[string]any{key: value}
		} else {
			value = []any{value}
		}
	}
	alone, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return decode(alone, reflect.New(t).Interface())
}

func pathOf(steps []any) string {
	var path strings.Builder
	for _, step := range steps {
		if key, ok := step.(string); ok {
			fmt.Fprintf(&path, ".%s", key)
		} else {
			fmt.Fprintf(&path, "[%d]", step)
		}
	}
	return strings.TrimPrefix(path.String(), ".")
}
