package profile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	web  = Workload{"shop", "Deployment", "web"}
	cron = Workload{"shop", "CronJob", "report"}
)

// at returns a time in November 2026, UTC.
func at(day, hour, minute int) int64 {
	return time.Date(2026, 11, day, hour, minute, 0, 0, time.UTC).Unix()
}

func TestTheRuleByHand(t *testing.T) {
	c := NewCollector(Default())
	// 9 o'clock on two days: 1 to 6 on the first, 7 to 10 on the second. Of ten samples the 90th percentile is the ninth.
	for i := range int64(6) {
		c.Add(web, CPU, at(1, 9, int(i)), i+1)
	}
	for i := range int64(4) {
		c.Add(web, CPU, at(2, 9, int(i)), 10-i)
	}
	// One sample more makes it the tenth of eleven: ceil(9.9).
	for i := range int64(11) {
		c.Add(web, CPU, at(2, 10, int(i)), i+1)
	}
	c.Add(web, Memory, at(1, 9, 0), 500)
	c.Add(web, Memory, at(2, 9, 0), 300)
	c.Add(web, Memory, at(2, 23, 59), 0)
	got := c.Profiles(at(2, 23, 59))
	want := Profile{Workload: web, Samples: 21, Days: 1, First: at(1, 9, 0), Last: at(2, 23, 59)} // 10 o'clock has one day
	for h := range Hours {
		want.Day[CPU][h], want.Day[Memory][h] = Unknown, Unknown
	}
	want.Day[CPU][9], want.Day[CPU][10] = 9, 10
	want.Day[Memory][9], want.Day[Memory][23] = 500, 0
	if diff := cmp.Diff([]Profile{want}, got); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
	if amount, hour := got[0].Day[CPU].Peak(); amount != 10 || hour != 10 {
		t.Errorf("the peak is %d at %d, want 10 at 10", amount, hour)
	}
}

func TestWhatCounts(t *testing.T) {
	tests := []struct {
		name    string
		options Options
		add     func(c *Collector)
		now     int64
		hour    int
		want    int64 // of CPU in that hour
		days    int64 // -1: no profile at all
	}{
		{"TheOldestHourThatCounts", Default(), func(c *Collector) { c.Add(web, CPU, at(1, 9, 0), 7) }, at(8, 8, 59), 9, 7, 1},
		{"OneHourTooOld", Default(), func(c *Collector) { c.Add(web, CPU, at(1, 9, 0), 7) }, at(8, 9, 0), 9, 0, -1},
		{"TheNewerDayDisplaces", Options{Days: 1, Percent: 90, MostWorkloads: 1}, func(c *Collector) {
			c.Add(web, CPU, at(1, 9, 0), 70)
			c.Add(web, CPU, at(2, 9, 0), 7)
		}, at(2, 9, 30), 9, 7, 1},
		{"TheOlderDayDoesNot", Options{Days: 1, Percent: 90, MostWorkloads: 1}, func(c *Collector) {
			c.Add(web, CPU, at(2, 9, 0), 7)
			c.Add(web, CPU, at(1, 9, 0), 70)
		}, at(2, 9, 30), 9, 7, 1},
		{"FromTheFuture", Default(), func(c *Collector) { c.Add(web, CPU, at(3, 9, 0), 7) }, at(2, 9, 0), 9, 0, -1},
		{"Before1970", Default(), func(c *Collector) { c.Add(web, CPU, -7200, 7) }, at(2, 9, 0), 9, 0, -1},
		{"Maximum", Options{Days: 7, Percent: 100, MostWorkloads: 1}, func(c *Collector) {
			for i := range int64(20) {
				c.Add(web, CPU, at(1, 9, int(i)), i+1)
			}
		}, at(1, 10, 0), 9, 20, 1},
		{"DaysOfTheLeastMeasuredHour", Default(), func(c *Collector) {
			for day := range 3 {
				c.Add(web, CPU, at(day+1, 9, 0), 7)
				c.Add(web, CPU, at(min(day, 1)+1, 10, 0), 8)
			}
		}, at(3, 12, 0), 9, 7, 2},
		{"DaysOfTheLeastMeasuredResource", Default(), func(c *Collector) {
			c.Add(web, CPU, at(3, 9, 0), 7)
			for day := range 7 {
				c.Add(web, Memory, at(day+1, 9, 0), 8)
			}
		}, at(7, 12, 0), 9, 7, 1},
		{"AResourceWithoutSamplesHasNoDays", Default(), func(c *Collector) {
			for day := range 7 {
				c.Add(web, Memory, at(day+1, 9, 0), 8)
			}
		}, at(7, 12, 0), 9, Unknown, 7},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := NewCollector(test.options)
			test.add(c)
			got := c.Profiles(test.now)
			if test.days < 0 {
				if kept := test.name == "FromTheFuture"; len(got) != 0 || c.Workloads() != 0 && !kept {
					t.Fatalf("profiles %v of %d workloads, want none", got, c.Workloads())
				}
				return
			}
			if len(got) != 1 || got[0].Day[CPU][test.hour] != test.want || got[0].Days != test.days {
				t.Errorf("profiles %+v, want %d at %d o'clock of %d days", got, test.want, test.hour, test.days)
			}
		})
	}
}

func TestTheNewestLimitCounts(t *testing.T) {
	c := NewCollector(Default())
	c.Add(web, CPU.Limit(), at(1, 9, 0), 1) // of a workload without samples
	if c.Workloads() != 0 {
		t.Error("a limit makes a workload")
	}
	c.Add(web, CPU, at(1, 9, 0), 7)
	for _, told := range [][2]int64{{at(1, 9, 1), 300}, {at(1, 9, 2), 200}, {at(1, 9, 2), 100}, {at(1, 9, 0), 400}} {
		c.Add(web, CPU.Limit(), told[0], told[1])
	}
	c.Add(web, Memory.Limit(), at(1, 9, 0), 1<<63-1)
	p := c.Profiles(at(1, 9, 3))[0]
	if want := [Resources]int64{200, mostAmount}; p.Limits != want || p.Samples != 1 || p.Last != at(1, 9, 0) {
		t.Errorf("%+v, want the limits %v", p, want)
	}
	old, fresh := p, p
	old.Last, old.Limits = p.Last-1, [Resources]int64{999, 5}
	fresh.Limits[Memory] = 0
	if got, want := Merge([]Profile{fresh}, []Profile{old})[0].Limits, [Resources]int64{200, 5}; got != want {
		t.Errorf("limits %v together, want %v", got, want)
	}
	c.Add(web, CPU.Limit(), at(1, 9, 5), 0) // it has none any more
	if got := c.Profiles(at(1, 9, 6))[0].Limits[CPU]; got != 0 {
		t.Errorf("a limit of %d is left", got)
	}
}

func TestOrderOfSamplesDoesNotMatter(t *testing.T) {
	type sample struct {
		w               Workload
		of              Resource
		seconds, amount int64
	}
	random := rand.New(rand.NewPCG(1, 2))
	var samples []sample
	for range 5000 {
		samples = append(samples, sample{[]Workload{web, cron}[random.IntN(2)], Resource(random.IntN(2)),
			at(1, 0, 0) + random.Int64N(6*86400), random.Int64N(1 << random.IntN(62))})
	}
	var want []Profile
	for range 3 {
		c := NewCollector(Default())
		for _, s := range samples {
			c.Add(s.w, s.of, s.seconds, s.amount)
		}
		got := c.Profiles(at(7, 0, 0))
		if len(got) != 2 || got[0].Workload != cron {
			t.Fatalf("profiles of %d workloads, the first of %v", len(got), got[0].Workload)
		}
		if want != nil && !cmp.Equal(want, got) {
			t.Fatal("another order, another profile")
		}
		want = got
		random.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
	}
}

func TestBuckets(t *testing.T) {
	for _, amount := range []int64{0, 1, 63, 64, 65, 66, 127, 128, 1000, 4095, 1<<40 - 1, 1 << 40, 1<<62 - 1, 1 << 62, 1<<63 - 1} {
		top := topOf(bucketOf(amount))
		switch capped := min(amount, 1<<62); {
		case top < capped, amount < 64 && top != amount:
			t.Errorf("%d is counted as %d", amount, top)
		case float64(top) >= float64(capped)*(1+1.0/32) && amount >= 64:
			t.Errorf("%d is counted as %d, more than 1/32 above", amount, top)
		case bucketOf(top) != bucketOf(capped) || top < 1<<62 && bucketOf(top+1) != bucketOf(top)+1:
			t.Errorf("%d does not end the bucket of %d", top, amount)
		}
	}
	if top := topOf(bucketOf(64)); top != 65 { // 64 and 65 share a bucket: 32 of them from 64 to 127
		t.Errorf("the bucket of 64 ends at %d, want 65", top)
	}
}

func TestAFullBucketStaysFull(t *testing.T) {
	var h, other histogram
	h.addMany(5, mostCount)
	other.addMany(5, 3)
	h.merge(other)
	h.add(9)
	if h.count() != mostCount+1 || h.percentile(90) != 5 {
		t.Errorf("%d counted, the 90th percentile is %d", h.count(), h.percentile(90))
	}
}

func TestNamespacesShareTheRoom(t *testing.T) {
	options := Default()
	options.MostWorkloads = 4
	c := NewCollector(options)
	add := func(namespace string, i, samples int) bool {
		kept := true
		for s := range samples {
			kept = c.Add(Workload{namespace, "Deployment", fmt.Sprint(i)}, CPU, at(1, 9, s), 1)
		}
		return kept
	}
	for i := range 4 {
		add("many", i, 4-i)
	}
	if add("many", 4, 1) {
		t.Error("a namespace drove out one of its own workloads")
	}
	if !add("shop", 0, 1) || !add("shop", 1, 1) {
		t.Error("a namespace with less than its share found no room")
	}
	if add("shop", 2, 1) {
		t.Error("a namespace with its share drove out another")
	}
	if c.Refused() != 4 {
		t.Errorf("%d refused, want 4: two without room, two that lost it", c.Refused())
	}
	var kept []string
	for _, p := range c.Profiles(at(1, 10, 0)) {
		kept = append(kept, p.Workload.Namespace+p.Workload.Name)
	}
	if want := []string{"many0", "many1", "shop0", "shop1"}; !slices.Equal(kept, want) {
		t.Errorf("kept %v, want %v: those with most samples", kept, want)
	}
}

func BenchmarkProfiles(b *testing.B) {
	c := NewCollector(Default())
	random := rand.New(rand.NewPCG(1, 2))
	for w := range 1000 {
		owner := Workload{"shop", "Deployment", fmt.Sprint(w)}
		for hour := range int64(168) {
			for range 36 { // three pods
				c.Add(owner, CPU, at(1, 0, 0)+hour*3600, 100+random.Int64N(100))
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(c.Profiles(at(8, 0, 0)-1)) != 1000 {
			b.Fatal("profiles are missing")
		}
	}
}

func TestMerge(t *testing.T) {
	one := func(w Workload, at9, at10, days int64) Profile {
		p := Profile{Workload: w, Samples: 1, Days: days, First: at9, Last: at10}
		for of := range p.Day {
			for hour := range p.Day[of] {
				p.Day[of][hour] = Unknown
			}
		}
		p.Day[CPU][9], p.Day[CPU][10] = at9, at10
		return p
	}
	db := Workload{"shop", "StatefulSet", "db"}
	merged := one(web, 3, 7, 4)
	merged.Samples, merged.Day[CPU][9], merged.First = 2, 5, 3
	got := Merge([]Profile{one(cron, 1, 2, 3), one(web, 5, Unknown, 1)}, []Profile{one(web, 3, 7, 4), one(db, 4, 4, 4)})
	if diff := cmp.Diff([]Profile{one(cron, 1, 2, 3), merged, one(db, 4, 4, 4)}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
