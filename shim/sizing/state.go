package sizing

import (
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/policy"
)

// StateKind is the kind of a file with what a pass left for the next one.
const StateKind = "SizeState"

// State is what a pass leaves for the next one.
type State struct {
	metav1.TypeMeta `json:",inline"`
	Groups          []GroupState `json:"groups"`
}

// GroupState is that of one group.
type GroupState struct {
	// Name of the node group.
	Name string `json:"name"`
	// CachedNode is what a node of the group offers, known from when there was one.
	CachedNode *CachedNode `json:"cachedNode,omitempty"`
	// LockedAt is when the cloud accepted a request for nodes, Requested how many were requested last, and Expected how
	// many there should be then.
	LockedAt  *metav1.MicroTime `json:"lockedAt,omitempty"`
	Requested int64             `json:"requested,omitempty"`
	Expected  *int64            `json:"expected,omitempty"`
	// AskedAt is when nodes were asked of the cloud that it may have taken since, and AskedTarget its target before.
	AskedAt     *metav1.MicroTime `json:"askedAt,omitempty"`
	AskedTarget *int64            `json:"askedTarget,omitempty"`
}

// CachedNode are the allocatable amounts of a node.
type CachedNode struct {
	CPU    resource.Quantity `json:"cpu"`
	Memory resource.Quantity `json:"memory"`
}

// LoadState reads a file of kind SizeState, in which unknown fields are errors.
func LoadState(name string) (*loadlinev1.SizeState, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	state, err := ParseState(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return state, nil
}

// ParseState reads YAML or JSON of kind SizeState.
func ParseState(data []byte) (*loadlinev1.SizeState, error) {
	var read State
	if err := policy.DecodeStrict(data, &read); err != nil {
		return nil, err
	}
	if read.APIVersion != nodegroup.APIVersion || read.Kind != StateKind {
		return nil, fmt.Errorf("apiVersion %q, kind %q: must be %s, %s", read.APIVersion, read.Kind,
			nodegroup.APIVersion, StateKind)
	}
	out := &loadlinev1.SizeState{}
	for i := range read.Groups {
		group, err := read.Groups[i].proto()
		if err != nil {
			return nil, fmt.Errorf("groups[%d].%w", i, err)
		}
		out.Groups = append(out.Groups, group)
	}
	return out, nil
}

func (s *GroupState) proto() (*loadlinev1.GroupSizeState, error) {
	if s.Name == "" {
		return nil, errors.New("name: missing")
	}
	out := &loadlinev1.GroupSizeState{NodeGroup: s.Name, Requested: s.Requested, Expected: s.Expected,
		AskedTarget: s.AskedTarget}
	if s.CachedNode != nil {
		if s.CachedNode.CPU.Sign() < 0 || s.CachedNode.Memory.Sign() < 0 {
			return nil, errors.New("cachedNode: an amount is negative")
		}
		out.CachedNode = &loadlinev1.NodeSize{MilliCpu: min(s.CachedNode.CPU.MilliValue(), math.MaxInt64/2),
			MemoryBytes: min(s.CachedNode.Memory.Value(), math.MaxInt64/2)}
	}
	if s.LockedAt != nil {
		locked := s.LockedAt.UnixMilli()
		out.LockedMilliseconds = &locked
	}
	if s.AskedAt != nil {
		asked := s.AskedAt.UnixMilli()
		out.AskedMilliseconds = &asked
	}
	return out, nil
}

// NewState returns the state of an answer, in the form of the file.
func NewState(from *loadlinev1.SizeState) State {
	out := State{TypeMeta: metav1.TypeMeta{APIVersion: nodegroup.APIVersion, Kind: StateKind}, Groups: []GroupState{}}
	for _, group := range from.GetGroups() {
		state := GroupState{Name: group.GetNodeGroup(), Requested: group.GetRequested(), Expected: group.Expected,
			AskedTarget: group.AskedTarget}
		if node := group.GetCachedNode(); node != nil {
			state.CachedNode = &CachedNode{CPU: *resource.NewMilliQuantity(node.GetMilliCpu(), resource.DecimalSI),
				Memory: *resource.NewQuantity(node.GetMemoryBytes(), resource.BinarySI)}
		}
		if group.LockedMilliseconds != nil {
			locked := metav1.NewMicroTime(time.UnixMilli(group.GetLockedMilliseconds()).UTC())
			state.LockedAt = &locked
		}
		if group.AskedMilliseconds != nil {
			asked := metav1.NewMicroTime(time.UnixMilli(group.GetAskedMilliseconds()).UTC())
			state.AskedAt = &asked
		}
		out.Groups = append(out.Groups, state)
	}
	return out
}
