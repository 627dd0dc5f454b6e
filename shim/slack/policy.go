package slack

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
)

// Policy says how much room is kept free, as people write it.
type Policy struct {
	// Rate is the share to keep free: "10%" or "0.1".
	Rate string
	// Basis is what that is a share of: requested or capacity.
	Basis string
	// Version is what is kept beside equal pieces: 1, 2a, 2b or pareto.
	Version string
	// Granularity: a piece is at most one part in so many of a node.
	Granularity int
	// MaxPlaceholders of a class, and copies of a pod.
	MaxPlaceholders int
}

// DefaultPolicy is version 1 of the proposal with a tenth of what pods request.
func DefaultPolicy() Policy {
	return Policy{Rate: "10%", Basis: "requested", Version: "1", Granularity: 5, MaxPlaceholders: 10000}
}

var (
	bases    = map[string]loadlinev1.SlackPolicy_Basis{"requested": loadlinev1.SlackPolicy_REQUESTED, "capacity": loadlinev1.SlackPolicy_CAPACITY}
	versions = map[string]loadlinev1.SlackPolicy_Reserve{"1": loadlinev1.SlackPolicy_NONE, "2a": loadlinev1.SlackPolicy_BIGGEST,
		"2b": loadlinev1.SlackPolicy_HULL, "pareto": loadlinev1.SlackPolicy_PARETO}
)

// Proto returns the policy as the engine takes it, which knows how large numbers may be. An error names the flag.
func (p *Policy) Proto() (*loadlinev1.SlackPolicy, error) {
	rate, err := parseShare(p.Rate)
	if err != nil {
		return nil, fmt.Errorf("--extra-capacity-min-rate %q: must be a number such as 0.1, or a percentage such as 10%%", p.Rate)
	}
	policy := &loadlinev1.SlackPolicy{ExtraCapacityMinRate: proto.Float64(rate), Granularity: int32(p.Granularity), MaxPlaceholders: int32(p.MaxPlaceholders)}
	var known bool
	if policy.Basis, known = bases[p.Basis]; !known {
		return nil, fmt.Errorf("--slack-basis %q: must be requested or capacity", p.Basis)
	}
	if policy.Reserve, known = versions[p.Version]; !known {
		return nil, fmt.Errorf("--slack-version %q: must be 1, 2a, 2b or pareto", p.Version)
	}
	if p.Granularity < 1 || p.Granularity > math.MaxInt32 || p.MaxPlaceholders < 1 || p.MaxPlaceholders > math.MaxInt32 {
		return nil, fmt.Errorf("--slack-granularity %d, --max-placeholders %d: must be at least 1", p.Granularity, p.MaxPlaceholders)
	}
	return policy, nil
}

// parseShare reads 0.1 or 10%.
func parseShare(text string) (float64, error) {
	percent, isPercent := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(percent, 64)
	if isPercent {
		value /= 100
	}
	return value, err
}
