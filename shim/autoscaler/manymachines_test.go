package autoscaler

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/cloud"
)

// machinesOf has a group list so many machines, with ids of a length and, if it is set, with a fault each.
func machinesOf(machines, idBytes int, faults bool) func(*cloud.Group) {
	return func(g *cloud.Group) {
		g.Target, g.Max, g.Instances = machines, machines, nil
		for i := range machines {
			status := &externalgrpc.InstanceStatus{InstanceState: externalgrpc.InstanceState_INSTANCE_RUNNING}
			if faults {
				status.InstanceState = externalgrpc.InstanceState_INSTANCE_CREATING
				status.ErrorInfo = &externalgrpc.InstanceErrorInfo{ErrorCode: strings.Repeat("c", 64),
					ErrorMessage: strings.Repeat("m", 160)}
			}
			g.Instances = append(g.Instances,
				&externalgrpc.Instance{Id: fmt.Sprintf("sky://%0*d", idBytes-len("sky://"), i), Status: status})
		}
	}
}

// One group that lists more machines than a question holds, or sizes beyond 32 bits, is left as it is, alone: no loop
// fails, and the other group grows. Texts of faults are shortened before that.
func TestOneLargeGroupStopsNoLoop(t *testing.T) {
	left := "node group dear is left as it is: "
	for name, c := range map[string]struct {
		group func(*cloud.Group)
		warns string // "": no warning
	}{
		"Faults":       {machinesOf(14_000, 90, true), ""},
		"LongIDs":      {machinesOf(40_000, 100, false), left + "its 40000 machines take "},
		"Machines":     {machinesOf(100_001, 20, false), left + "its 100001 machines take "},
		"Max":          {func(g *cloud.Group) { g.Max = 1 << 31 }, ""},
		"MaxAndAround": {func(g *cloud.Group) { g.Max = 1<<32 + 5 }, ""},
		"Min":          {func(g *cloud.Group) { g.Min, g.Max = 1<<32+1, 1<<33 }, left + "it states a minimum of 4294967297 "},
		"Target":       {func(g *cloud.Group) { g.Target = 1 << 32 }, left + "it states a target of 4294967296 "},
		"Negative":     {func(g *cloud.Group) { g.Min = math.MinInt }, left + "it states a minimum of -9223372036854775808 "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &odd{group: c.group}
				o.sky = &sky{delay: 40 * time.Second, groups: map[string]*skyGroup{
					"cheap": {max: 10, cpu: "4", price: 0.1}, "dear": {max: 10, cpu: "4", price: 0.3}}}
				o.client = o
				b := growingUnder(t, o.sky, nil)
				defer b.end()
				b.addPending("web", 2, "3")
				for range 6 {
					if err := b.once(b.ctx); err != nil {
						t.Fatalf("%.300v", err)
					}
					time.Sleep(10 * time.Second)
				}
				got := o.requests()
				if !slices.Contains(got, "cheap+2") || slices.ContainsFunc(got, func(r string) bool {
					return c.warns != "" && strings.HasPrefix(r, "dear")
				}) {
					t.Errorf("the cloud was asked for %.300v, want cheap+2 and nothing of dear", got)
				}
				status := b.readStatus()
				warnings := strings.Join(status.Warnings, "\n")
				if left := status.LeftOut; left != nil && c.warns == "" {
					t.Errorf("left out by the engine: %v", left)
				}
				if !strings.Contains(warnings, c.warns) || c.warns == "" && warnings != "" {
					t.Errorf("warnings %q, want %q", warnings, c.warns)
				}
			})
		})
	}
}
