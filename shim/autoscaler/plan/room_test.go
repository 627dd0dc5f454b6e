package plan

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
)

// The bounds are those of the engine.
func TestBoundsAreThoseOfTheEngine(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want int64
	}{
		"kMaxMessageBytes":   {"plugin/convert/parse.h", mostMessageBytes},
		"kMaxObjectBytes":    {"plugin/convert/parse.h", mostObjectBytes},
		"kMaxFleetMachines":  {"plugin/convert/fleet.h", mostMachines},
		"kMaxFleetGroups":    {"plugin/convert/fleet.h", cloud.MaxGroups},
		"kMaxFleetTimeMs":    {"plugin/convert/fleet.h", mostFleetTime},
		"kMaxDrainTime":      {"plugin/convert/drain_state.h", mostTime},
		"kMaxNameLength":     {"plugin/convert/text.h", cloud.MostNameBytes},
		"kMostUpcomingNodes": {"core/grow/loop_problem.h", mostUpcoming},
	} {
		text, err := os.ReadFile("../../../" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(name + ` = ([^;]+);`).FindSubmatch(text)
		if found == nil {
			t.Errorf("%s has no %s", c.file, name)
		} else if got := valueOf(t, string(found[1])); got != c.want {
			t.Errorf("%s is %d here, %s says %d", name, c.want, c.file, got)
		}
	}
}

// valueOf returns the value of a constant such as size_t{4} << 20, 1536 * 1024 or 100'000.
func valueOf(t *testing.T, text string) int64 {
	text = regexp.MustCompile(`\w+\{(\d+)\}`).ReplaceAllString(strings.ReplaceAll(text, "'", ""), "$1")
	for sign, join := range map[string]func(a, b int64) int64{
		" << ": func(a, b int64) int64 { return a << b }, " * ": func(a, b int64) int64 { return a * b }} {
		if left, right, found := strings.Cut(text, sign); found {
			return join(valueOf(t, left), valueOf(t, right))
		}
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestNumber(t *testing.T) {
	for n, want := range map[int]int32{0: 0, 7: 7, -1: -1, math.MaxInt32: math.MaxInt32, 1 << 31: math.MaxInt32,
		1<<32 + 5: math.MaxInt32, math.MaxInt: math.MaxInt32, -1 << 40: math.MinInt32} {
		if got := Number(n); got != want {
			t.Errorf("Number(%d) is %d, want %d", n, got, want)
		}
	}
}

// groupOf returns a group with so many machines with ids of so many bytes.
func groupOf(id string, machines, idBytes int, fault *externalgrpc.InstanceErrorInfo) cloud.Group {
	g := cloud.Group{ID: id, Max: machines, Target: machines}
	for i := range machines {
		g.Instances = append(g.Instances, &externalgrpc.Instance{Id: fmt.Sprintf("%s-%0*d", id, idBytes-len(id)-1, i),
			Status: &externalgrpc.InstanceStatus{ErrorInfo: fault}})
	}
	return g
}

// shared returns a loop of groups and its question after their room was shared.
func shared(groups []cloud.Group, rest *loadlinev1.PlanLoopRequest) (*Loop, *loadlinev1.PlanLoopRequest) {
	o := &Loop{}
	o.See(groups)
	rest.Groups = o.groupMessages()
	o.shareRoom(rest)
	return o, rest
}

// The largest groups lose, each alone, and all that is sent fits into a question with room for pods.
func TestRoomIsShared(t *testing.T) {
	for name, c := range map[string]struct {
		groups []cloud.Group
		rest   *loadlinev1.PlanLoopRequest
		left   string // ids of groups that are left as they are
	}{
		"AllFit": {[]cloud.Group{groupOf("a", 10_000, 80, nil), groupOf("b", 20_000, 80, nil)}, nil, ""},
		"TheLargest": {[]cloud.Group{groupOf("a", 30_000, 100, nil), groupOf("b", 1, 80, nil),
			groupOf("c", 9_000, 80, nil)}, nil, "a"},
		"TwoOfThree": {[]cloud.Group{groupOf("a", 30_000, 100, nil), groupOf("b", 29_000, 100, nil),
			groupOf("c", 28_000, 80, nil)}, nil, "a b"},
		"Count":        {[]cloud.Group{groupOf("a", mostMachines, 8, nil), groupOf("b", 1, 8, nil)}, nil, "a"},
		"MostMachines": {[]cloud.Group{groupOf("a", mostMachines, 8, nil)}, nil, ""},
		"LittleRoom": {[]cloud.Group{groupOf("a", 4_000, 80, nil), groupOf("b", 10, 80, nil)},
			&loadlinev1.PlanLoopRequest{DaemonPods: [][]byte{make([]byte, 3300<<10)}}, "a"},
		"NoRoom": {[]cloud.Group{groupOf("a", 4_000, 80, nil), groupOf("b", 10, 80, nil)},
			&loadlinev1.PlanLoopRequest{DaemonPods: [][]byte{make([]byte, 4<<20)}}, "a b"},
	} {
		rest := c.rest
		if rest == nil {
			rest = &loadlinev1.PlanLoopRequest{}
		}
		o, request := shared(c.groups, rest)
		var left []string
		for i, g := range o.Groups {
			sent := len(request.Groups[i].Cloud.Machines)
			if g.Problem != nil {
				left = append(left, g.ID)
			}
			if want := len(g.Instances); g.Problem == nil && sent != want || g.Problem != nil && sent != 0 ||
				(g.Problem != nil) != (request.Groups[i].Cloud.Problem != "") {
				t.Errorf("%s: %d of %d machines of group %s are sent, problem %v", name, sent, want, g.ID, g.Problem)
			}
		}
		if got := strings.Join(left, " "); got != c.left || len(o.Warnings) != len(left) {
			t.Errorf("%s: %q are left as they are, want %q; warnings %q", name, got, c.left, o.Warnings)
		}
		if size := proto.Size(request); c.left != "a b" && size > mostBytes-podBytes {
			t.Errorf("%s: the question has %d bytes", name, size)
		}
	}
}

// Texts of faults are shortened in the largest group first: the first machine with each fault keeps its message, and
// other groups keep all.
func TestFaultsAreShortened(t *testing.T) {
	fault := &externalgrpc.InstanceErrorInfo{ErrorCode: "STOCK_OUT", ErrorMessage: strings.Repeat("m", 200)}
	large, small := groupOf("large", 15_000, 80, fault), groupOf("small", 10, 80, fault)
	large.Instances[7].Status.ErrorInfo = &externalgrpc.InstanceErrorInfo{ErrorCode: "QUOTA", ErrorMessage: "used up"}
	o, request := shared([]cloud.Group{large, small}, &loadlinev1.PlanLoopRequest{})
	if len(o.Warnings) > 0 {
		t.Fatal(o.Warnings)
	}
	for i, want := range []map[string]int{{"STOCK_OUT": 1, "QUOTA": 1}, {"STOCK_OUT": 10}} {
		got := map[string]int{}
		for _, machine := range request.Groups[i].Cloud.Machines {
			if machine.Fault.Message != "" {
				got[machine.Fault.Code]++
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("group %d: messages %v, want %v", i, got, want)
		}
	}
	if first := request.Groups[0].Cloud.Machines[0].Fault.Message; len(first) != mostFaultText {
		t.Errorf("the first message has %d bytes", len(first))
	}
}

// Machines of a group that is left as it is are upcoming nodes only where they have none and get one.
func TestUpcomingNodesOfAGroupThatIsLeft(t *testing.T) {
	g := groupOf("a", 10, 8, nil)
	g.Target = 12
	g.Instances[8].Status.InstanceState = externalgrpc.InstanceState_INSTANCE_DELETING
	g.Instances[9].Status.ErrorInfo = &externalgrpc.InstanceErrorInfo{ErrorCode: "x"}
	hasNode := func(id string) bool { return id < g.Instances[7].GetId() } // 7 machines
	if got := (&Group{Group: &g}).upcoming(hasNode); got != 12-7-1 {
		t.Errorf("%d nodes are upcoming, want 4", got)
	}
	for target, want := range map[int]int{3: 0, mostUpcoming + 8: mostUpcoming, mostUpcoming + 9: 0, math.MinInt32: 0} {
		g.Target = target
		if got := (&Group{Group: &g}).upcoming(hasNode); got != want {
			t.Errorf("of a target of %d %d nodes are upcoming, want %d", target, got, want)
		}
	}
}

// A question that is too large without any pod is refused with the part that is largest; else pods take the rest.
func TestRoomForPods(t *testing.T) {
	request := &loadlinev1.PlanLoopRequest{DaemonPods: [][]byte{make([]byte, 1<<20)}}
	if got, err := roomForPods(request); err != nil || got != mostBytes-proto.Size(request) {
		t.Errorf("room for %d bytes, error %v", got, err)
	}
	request.Progress = &loadlinev1.DrainProgress{Failed: []string{strings.Repeat("n", 3<<20)}}
	if _, err := roomForPods(request); err == nil || !strings.Contains(err.Error(),
		"3145733 are of drains; the limit is 4128768") {
		t.Error(err)
	}
}
