package sweep

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"loadline.dev/shim/api/loadlinev1"
)

// field is where a path leads: a field of a message of a scenario.
type field struct {
	of protoreflect.Message
	is protoreflect.FieldDescriptor
}

// find follows a path such as settings.slackPercent or groups.spot.max, where entries of lists go by their names.
func find(scenario *loadlinev1.Scenario, path string) (field, error) {
	at := scenario.ProtoReflect()
	parts := strings.Split(path, ".")
	for i := 0; i < len(parts); i++ {
		next := at.Descriptor().Fields().ByJSONName(parts[i])
		where := strings.Join(parts[:i+1], ".")
		switch {
		case next == nil:
			return field{}, fmt.Errorf("%s: there is no such field", where)
		case next.IsList() && next.Message() != nil:
			if i+1 == len(parts) {
				return field{}, fmt.Errorf("%s: is a list: name an entry and its field", where)
			}
			i++
			found := byName(at.Get(next).List(), parts[i])
			if found == nil {
				return field{}, fmt.Errorf("%s: there is no %q", where, parts[i])
			}
			at = found
		case next.Message() != nil:
			if i+1 == len(parts) {
				return field{}, fmt.Errorf("%s: name a field of it", where)
			}
			at = at.Mutable(next).Message()
			continue
		case i+1 < len(parts):
			return field{}, fmt.Errorf("%s: has no fields", where)
		default:
			return field{at, next}, nil
		}
		if i+1 == len(parts) {
			return field{}, fmt.Errorf("%s: name a field of it", path)
		}
	}
	return field{}, fmt.Errorf("%s: names no field", path)
}

// byName returns the entry that has a name; nil: there is none.
func byName(list protoreflect.List, name string) protoreflect.Message {
	for i := range list.Len() {
		entry := list.Get(i).Message()
		if of := entry.Descriptor().Fields().ByName("name"); of != nil && entry.Get(of).String() == name {
			return entry
		}
	}
	return nil
}

// whole says whether the field takes whole numbers only.
func (f field) whole() bool {
	switch f.is.Kind() {
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		return true
	}
	return false
}

// set gives the field a value.
func (f field) set(value any) error {
	content, err := json.Marshal(map[string]any{f.is.JSONName(): value})
	if err != nil {
		return err
	}
	read := f.of.New()
	if err := protojson.Unmarshal(content, read.Interface()); err != nil {
		return fmt.Errorf("%s is no value of this field", text(value))
	}
	if f.is.HasPresence() || read.Has(f.is) {
		f.of.Set(f.is, read.Get(f.is))
	} else {
		f.of.Clear(f.is)
	}
	return nil
}

// apply sets what a point says.
func (p Point) apply(scenario *loadlinev1.Scenario) error {
	for _, v := range p {
		at, err := find(scenario, v.Path)
		if err == nil {
			err = at.set(v.Value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", v.Path, err)
		}
	}
	return nil
}

// at returns the number that is a share of the way through a range, which is in [0, 1].
func (r *Range) at(share float64, whole bool) float64 {
	value := r.From + (r.To-r.From)*share
	if r.Log {
		value = r.From * math.Pow(r.To/r.From, share)
	}
	if whole {
		return math.Round(value)
	}
	return shortened(value)
}

// shortened leaves six digits, so that people can copy them.
func shortened(value float64) float64 {
	if value == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(value)))-5)
	short := math.Round(value/unit) * unit
	var out float64
	fmt.Sscanf(fmt.Sprintf("%.6g", short), "%g", &out)
	return out
}
