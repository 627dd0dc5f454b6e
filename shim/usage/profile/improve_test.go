package profile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The answer that lacked a pod is improved by the whole one, in either order, and no sample counts twice.
func TestImproveKeepsTheBetterAnswer(t *testing.T) {
	whole, part := NewCollector(Default()), NewCollector(Default())
	for minute := range 10 {
		whole.Add(web, CPU, at(1, 9, minute), int64(minute))
		whole.Add(web, Memory, at(1, 9, minute), 500)
		if minute < 3 {
			part.Add(web, CPU, at(1, 9, minute), int64(minute))
			part.Add(web, Memory, at(1, 9, minute), 400)
		}
	}
	whole.Add(web, CPU.Limit(), at(1, 9, 30), 70)
	part.Add(cron, Memory, at(1, 9, 0), 7)
	part.Add(web, CPU, at(1, 8, 0), 11)
	other := func() *Collector { // what another question about the same hours gathers
		c := NewCollector(Options{Days: 1, Percent: 90, MostWorkloads: 10})
		c.Improve(whole)
		return c
	}()
	part.Improve(other)
	want := Profile{Workload: web, Limits: [Resources]int64{70, 0}, Samples: 11, Days: 1, First: at(1, 8, 0),
		Last: at(1, 9, 9), Day: [Resources]Day{allUnknown(), allUnknown()}}
	want.Day[CPU][8], want.Day[CPU][9], want.Day[Memory][9] = 11, 8, 500 // the ninth of 0 to 9
	got := part.Profiles(at(1, 9, 59))
	if len(got) != 2 || got[0].Workload != cron {
		t.Fatalf("profiles %+v", got)
	}
	if diff := cmp.Diff(want, got[1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	worse := NewCollector(Default())
	worse.Add(web, CPU, at(1, 9, 0), 99)
	worse.Add(web, Memory, at(1, 9, 0), 9)
	part.Improve(worse)
	if diff := cmp.Diff(want, part.Profiles(at(1, 9, 59))[1]); diff != "" {
		t.Errorf("after a worse answer (-want +got):\n%s", diff)
	}
}

func TestImproveKeepsTheBoundOfWorkloads(t *testing.T) {
	c, by := NewCollector(Options{Days: 7, Percent: 90, MostWorkloads: 1}), NewCollector(Default())
	c.Add(web, CPU, at(1, 9, 0), 1)
	by.Add(cron, CPU, at(1, 9, 0), 1)
	c.Improve(by)
	if c.Workloads() != 1 || c.Refused() != 1 {
		t.Errorf("%d workloads, %d refused", c.Workloads(), c.Refused())
	}
}
