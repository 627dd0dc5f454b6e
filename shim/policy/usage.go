package policy

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"loadline.dev/shim/api/loadlinev1"
)

// ExpectedUse says how the expected use of pods by the hour counts in place of their limits.
type ExpectedUse struct {
	// Mode is Off or On. Default: Off.
	Mode Switch `json:"mode,omitempty"`
	// CPUMarginPercent is what profiles of CPU are multiplied by: 100 to 1000. Default: 100.
	CPUMarginPercent int32 `json:"cpuMarginPercent,omitempty"`
	// MemoryMarginPercent is what profiles of memory are multiplied by: 100 to 1000. Default: 100.
	MemoryMarginPercent int32 `json:"memoryMarginPercent,omitempty"`
	// NeighborHours has an hour count as the most of itself and so many before and after it: 0 to 11. Default: 0.
	NeighborHours int32 `json:"neighborHours,omitempty"`
	// MinDays are the days that a profile needs to count: 1 to 365. Default: 3.
	MinDays int32 `json:"minDays,omitempty"`
	// MaxAge is the age of the newest sample from which on a profile does not count: 1m or more. Default: 48h.
	MaxAge metav1.Duration `json:"maxAge,omitzero"`
	// Floor is the least that a pod counts as: NoFloor, or RequestFloor, its request. Default: NoFloor.
	Floor string `json:"floor,omitempty"`
}

// Switch is On or Off, which YAML takes for true and false where they are not quoted.
type Switch string

// UnmarshalJSON reads a text or a truth value.
func (s *Switch) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case "true":
		*s = "On"
	case "false":
		*s = "Off"
	default:
		return json.Unmarshal(data, (*string)(s))
	}
	return nil
}

var useFloors = NewChoice(loadlinev1.ExpectedUse_FLOOR_UNSPECIFIED, camelCase)

var useModes = NewChoice(loadlinev1.ExpectedUse_MODE_UNSPECIFIED, camelCase)

// On says whether profiles count.
func (u *ExpectedUse) On() bool { return u != nil && u.Mode == "On" }

// Proto returns the options as the engine takes them; nil: profiles do not count.
func (u *ExpectedUse) Proto() *loadlinev1.ExpectedUse {
	if !u.On() {
		return nil
	}
	return &loadlinev1.ExpectedUse{Mode: loadlinev1.ExpectedUse_ON, CpuMarginPercent: u.CPUMarginPercent,
		MemoryMarginPercent: u.MemoryMarginPercent, NeighborHours: u.NeighborHours, MinDays: u.MinDays,
		MaxAgeS: int64(u.MaxAge.Seconds()), Floor: loadlinev1.ExpectedUse_Floor(useFloors.Number(u.Floor))}
}

// expectedUse returns the options of the engine as people write them.
func expectedUse(in *loadlinev1.ExpectedUse) *ExpectedUse {
	if in == nil {
		return nil
	}
	return &ExpectedUse{Mode: Switch(useModes.Word(in.GetMode().Number())), CPUMarginPercent: in.GetCpuMarginPercent(),
		MemoryMarginPercent: in.GetMemoryMarginPercent(), NeighborHours: in.GetNeighborHours(), MinDays: in.GetMinDays(),
		MaxAge: metav1.Duration{Duration: time.Duration(in.GetMaxAgeS()) * time.Second},
		Floor:  useFloors.Word(in.GetFloor().Number())}
}

// validateAt returns an error for each wrong field.
func (u *ExpectedUse) validateAt(path *field.Path) field.ErrorList {
	if u == nil {
		return nil
	}
	errs := append(useModes.Check(path.Child("mode"), string(u.Mode)), useFloors.Check(path.Child("floor"), u.Floor)...)
	for _, c := range []struct {
		name             string
		value            int32
		unset, low, high int32
	}{
		{"cpuMarginPercent", u.CPUMarginPercent, 0, 100, 1000},
		{"memoryMarginPercent", u.MemoryMarginPercent, 0, 100, 1000},
		{"neighborHours", u.NeighborHours, 0, 0, 11},
		{"minDays", u.MinDays, 0, 1, 365},
	} {
		if c.value != c.unset && (c.value < c.low || c.value > c.high) {
			errs = append(errs, field.Invalid(path.Child(c.name), c.value, fmt.Sprintf("must be %d to %d", c.low, c.high)))
		}
	}
	if age := u.MaxAge.Seconds(); age != 0 && (age < 60 || age > 1<<32) {
		errs = append(errs, field.Invalid(path.Child("maxAge"), u.MaxAge.Duration.String(), "must be 1m or more"))
	}
	return errs
}
