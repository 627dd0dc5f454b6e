package e2e

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"loadline.dev/test/e2e/simcloud"
)

// one has a group at one size from the start to the end.
func one(group simcloud.Group, size int) pairGroup { return pairGroup{group, size, size, size} }

// slackPairs keep 10 % of what is requested, in one piece on the node that the scheduler chooses.
var slackPairs = []pair{{
	// 8 - 7.26 = 740m are left for 726m: the node with 1 cpu is removed, and none is added for slack while its pod moves.
	name: "slack-goes", slack: []string{"fits-2"}, groups: []pairGroup{{pool("fits", 0, 3, 8, 1), 2, 1, 1}},
	loads: []pairLoad{{name: "fits-1", bound: []string{"fits-1"}, cpu: "1"},
		{name: "fits-2", bound: []string{"fits-2"}, cpu: "6260m", endsOn: "fits-2"}},
}, {
	// 8 - 7.28 = 720m are left for 728m: it stays.
	name: "slack-stays", slack: []string{"lacks-1"}, groups: []pairGroup{one(pool("lacks", 0, 3, 8, 1), 2)},
	loads: []pairLoad{{name: "lacks-1", bound: []string{"lacks-1"}, cpu: "1"},
		{name: "lacks-2", bound: []string{"lacks-2"}, cpu: "6280m"}},
}, {
	// One node is added, of the cheaper group, for 3 + 0.3 of 4 cpu. While it starts, the pod and the placeholder wait.
	name: "slack-starts", slack: []string{"agent-1"},
	groups: []pairGroup{{starting(pool("agent", 0, 3, 4, 0.2)), 0, 1, 1}, one(pool("plain", 0, 3, 4, 0.3), 0)},
	loads:  []pairLoad{{name: "starts", waiting: 1, cpu: "3"}},
	then:   func(s *scaled) { s.hasStarted("agent-1") },
}, {
	// 2.7 of 4 cpu are 67.5 %. The placeholder of 0.27 is no demand: with it there were 74.25 %, and the sized group would
	// grow above 70 %.
	name: "slack-sized", slack: []string{"kept-1"}, groups: []pairGroup{one(pool("kept", 0, 3, 4, 1), 1)},
	loads: []pairLoad{{name: "kept", bound: []string{"kept-1"}, cpu: "2700m"}},
}, {
	// The node is full, and 0.4 are kept free: of two groups the cheaper one grows.
	name: "slack-ranking", slack: []string{"spare-cheap-1"}, groups: []pairGroup{one(pool("full", 1, 1, 4, 0.1), 1),
		one(pool("spare-dear", 0, 3, 4, 0.3), 0), {pool("spare-cheap", 0, 3, 4, 0.2), 0, 1, 1}},
	loads: []pairLoad{{name: "full", bound: []string{"full-1"}, cpu: "4"}},
}, {
	// The placeholder of 0.4 counts as what it requests: with limits of 2 + 0.4 the second node has less than the first
	// one with 4, and takes the next pod. Then 10 % of 4.001 are more than one placeholder, and a second one is added.
	name: "slack-scored", slack: []string{"scored-b-1", "scored-b-1"},
	groups: []pairGroup{one(pool("scored-a", 1, 1, 8, 1), 1), one(pool("scored-b", 1, 1, 8, 1), 1)},
	loads: []pairLoad{{name: "scored-a", bound: []string{"scored-a-1"}, cpu: "2", limit: "4"},
		{name: "scored-b", bound: []string{"scored-b-1"}, cpu: "2"},
		{name: "scored-next", late: 1, cpu: "1m", endsOn: "scored-b-1"}},
	then: func(s *scaled) { s.replicas("scored-next", 1) },
}}

// linePairs have pods that fit by what they request, and may be above the line of 1.5 by their limits.
var linePairs = []pair{{
	// 5.9 + 5.9 + 0.2 are at the line of 12.
	name: "line-slack", slack: []string{"lower-1"}, groups: []pairGroup{one(pool("lower", 0, 3, 8, 1), 1)},
	loads: []pairLoad{{name: "lower", bound: []string{"lower-1", "lower-1"}, cpu: "1", limit: "5900m"}},
}, {
	// 2 x 5.901 + 0.2 are above it: one node is added for slack.
	name: "line-slack-grows", slack: []string{"higher-2"},
	groups: []pairGroup{{pool("higher", 0, 3, 8, 1), 1, 2, 2}},
	loads:  []pairLoad{{name: "higher", bound: []string{"higher-1", "higher-1"}, cpu: "1", limit: "5901m"}},
}, {
	// 2 + 0.7 of 4 cpu are 67.5 %, below 70 %, and limits of 2 x 2.5 + 1.001 above the line of 6: the pod starves, and
	// one node is added. Then 33.75 % are above the threshold of 30 %.
	name: "line-sized", groups: []pairGroup{{pool("starves", 0, 3, 4, 1), 1, 2, 2}},
	loads: []pairLoad{{name: "starves-1", bound: []string{"starves-1", "starves-1"}, cpu: "1", limit: "2500m"},
		{name: "starves-2", waiting: 1, cpu: "700m", limit: "1001m", endsOn: "starves-2"}},
}, {
	// 2 x 2.5 + 1 are at it.
	name: "line-sized-stays", groups: []pairGroup{one(pool("let", 0, 3, 4, 1), 1)},
	loads: []pairLoad{{name: "let-1", bound: []string{"let-1", "let-1"}, cpu: "1", limit: "2500m"},
		{name: "let-2", waiting: 1, cpu: "700m", limit: "1", endsOn: "let-1"}},
}, {
	// The node that starts takes two of three pods, since 3 x 2.5 are above its line of 6: one more is added.
	name: "line-starts", groups: []pairGroup{{starting(pool("lined", 0, 3, 4, 1)), 1, 2, 2}},
	loads: []pairLoad{{name: "lined", waiting: 3, cpu: "1", limit: "2500m"}},
	then:  func(s *scaled) { s.hasStarted("lined-1"); s.hasStarted("lined-2") },
}, {
	// 4 + 2.5 are above the line of 6: the group in the zone of the volume grows, and not the cheaper one.
	name: "line-volumes", groups: []pairGroup{{inZone("a", pool("line-a", 0, 3, 4, 0.3)), 1, 2, 2},
		one(inZone("b", pool("line-b", 0, 3, 4, 0.2)), 0)},
	loads: []pairLoad{{name: "line-a-1", bound: []string{"line-a-1"}, cpu: "1", limit: "4", zone: "a"},
		{name: "line-a-2", waiting: 1, cpu: "500m", limit: "2500m", zone: "a", endsOn: "line-a-2"}},
}}

// drainPairs lose one node of two, or none.
var drainPairs = []pair{{
	// Limits of 4 + 4 + 4 are at the line of 12.
	name: "drain-line", groups: []pairGroup{{pool("below", 0, 3, 8, 1), 2, 1, 1}},
	loads: []pairLoad{{name: "below-1", bound: []string{"below-1", "below-1"}, cpu: "1", limit: "4"},
		{name: "below-2", bound: []string{"below-2"}, cpu: "4", limit: "4"}},
}, {
	// 4 + 4 + 4.008 are above it.
	name: "drain-line-stays", groups: []pairGroup{one(pool("above", 0, 3, 8, 1), 2)},
	loads: []pairLoad{{name: "above-1", bound: []string{"above-1", "above-1"}, cpu: "1", limit: "4"},
		{name: "above-2", bound: []string{"above-2"}, cpu: "4", limit: "4008m"}},
}, {
	// A pod of a high priority has room made for it on the first node. Until that has ended, 4 - 3.5 cpu are left there,
	// too few for the pod of 1 cpu on the other node: none is removed, and none is added for the pod that waits.
	name: "drain-priorities", groups: []pairGroup{one(pool("made", 0, 4, 4, 1), 2)},
	loads: []pairLoad{{name: "victim", bound: []string{"made-1"}, cpu: "2", lingers: true},
		{name: "stays", bound: []string{"made-2"}, cpu: "1", priority: "high", endsOn: "made-2"},
		{name: "preempts", waiting: 1, cpu: "3500m", priority: "high", endsOn: "made-1"}},
	then: func(s *scaled) { s.letEnd("victim-0") },
}, {
	// Each node is at 45 %. A sized group keeps both, since that is above its threshold of 30 %.
	name: "drain-sized", groups: []pairGroup{one(pool("sized", 0, 4, 4, 1), 2)},
	loads: []pairLoad{{name: "sized", bound: []string{"sized-1", "sized-2"}, cpu: "1800m"}},
}, {
	// The same without a size: 1.8 + 1.8 of 4 cpu, one is removed.
	name: "drain-unsized", groups: []pairGroup{{pool("unsized", 0, 4, 4, 1), 2, 1, 1}},
	loads: []pairLoad{{name: "unsized", bound: []string{"unsized-1", "unsized-2"}, cpu: "1800m"}},
}, {
	// 1 + 1 of 4 cpu: of the two nodes, the dearer one is removed.
	name:   "drain-ranking",
	groups: []pairGroup{{pool("worth", 0, 3, 4, 2), 1, 0, 0}, one(pool("cheaper", 0, 3, 4, 1), 1)},
	loads:  []pairLoad{{name: "ranked", bound: []string{"worth-1", "cheaper-1"}, cpu: "1"}},
}, {
	// A node that starts takes no pods, and is not removed. Once it has started, one of two is.
	name: "drain-starts", groups: []pairGroup{{starting(pool("half", 0, 3, 4, 1)), 2, 2, 1}},
	loads: []pairLoad{{name: "half", bound: []string{"half-1"}, cpu: "1"}},
	then:  func(s *scaled) { s.hasStarted("half-2") },
}, {
	// 1 + 1.5 + 1 of 4 cpu: the DaemonSet's pod needs no place, with which they were 4.5.
	name: "drain-daemons", groups: []pairGroup{{pool("daemons", 0, 3, 4, 1), 2, 1, 1}},
	loads: []pairLoad{{name: "daemon", cpu: "1", daemon: true},
		{name: "daemons-1", bound: []string{"daemons-1"}, cpu: "1500m", endsOn: "daemons-1"},
		{name: "daemons-2", bound: []string{"daemons-2"}, cpu: "1"}},
}, {
	// One of the two nodes that reach the volumes of zone a is removed, and not that of zone b, though 3 x 1 of 4 cpu fit.
	name: "drain-volumes", groups: []pairGroup{{inZone("a", pool("za", 0, 3, 4, 1)), 2, 1, 1},
		one(inZone("b", pool("zb", 0, 3, 4, 1)), 1)},
	loads: []pairLoad{{name: "za-1", bound: []string{"za-1"}, cpu: "1", zone: "a"},
		{name: "za-2", bound: []string{"za-2"}, cpu: "1", zone: "a"},
		{name: "zb-1", bound: []string{"zb-1"}, cpu: "1", zone: "b"}},
}}

// growthPairs choose between groups.
var growthPairs = []pair{{
	// Beside the DaemonSet's limit of 3, a node of 4 cpu takes limits of 1.4 twice below its line of 6, and one of 8 cpu
	// three times. Two small nodes cost 0.6, a large one 0.5. Without the line, or without the DaemonSet, one small node
	// would do, for 0.3.
	name: "growth-line", groups: []pairGroup{one(pool("small", 0, 4, 4, 0.3), 0), {pool("large", 0, 4, 8, 0.5), 0, 1, 1}},
	loads: []pairLoad{{name: "daemon-limit", cpu: "100m", limit: "3", daemon: true},
		{name: "grows", waiting: 3, cpu: "500m", limit: "1400m"}},
}, {
	// Beside the DaemonSet's pod of 1 cpu each small node takes one pod: three cost 0.6, and a large one 0.5. Without it
	// two would do, for 0.4.
	name: "growth-daemons", groups: []pairGroup{one(pool("two", 0, 4, 2, 0.2), 0), {pool("eight", 0, 4, 8, 0.5), 0, 1, 1}},
	loads: []pairLoad{{name: "daemon-each", cpu: "1", daemon: true}, {name: "three-pods", waiting: 3, cpu: "1"}},
}, {
	// The group in the zone of the volume grows, and not the cheaper one.
	name: "growth-volumes", groups: []pairGroup{{inZone("a", pool("reach-a", 0, 3, 4, 0.3)), 0, 1, 1},
		one(inZone("b", pool("reach-b", 0, 3, 4, 0.2)), 0)},
	loads: []pairLoad{{name: "reach", waiting: 1, cpu: "1", zone: "a", endsOn: "reach-a-1"}},
}}

// movePairs have a dear node, whose pods may move to one of 4 cpu that costs less. Two of these would cost more.
var movePairs = []pair{{
	// 3.7 + 0.37 are too many.
	name: "move-slack-stays", slack: []string{"dear-t-1"},
	groups: []pairGroup{one(pool("dear-t", 0, 2, 8, 100), 1), one(pool("cheap-t", 0, 2, 4, 60), 0)},
	loads:  []pairLoad{{name: "moves-t", bound: []string{"dear-t-1"}, cpu: "3700m"}},
}, {
	// 3.6 + 0.36 fit: the placeholder moves along.
	name: "move-slack", slack: []string{"cheap-k-1"},
	groups: []pairGroup{{pool("dear-k", 0, 2, 8, 100), 1, 0, 0}, {pool("cheap-k", 0, 2, 4, 60), 0, 1, 1}},
	loads:  []pairLoad{{name: "moves-k", bound: []string{"dear-k-1"}, cpu: "3600m"}},
}, {
	// The DaemonSet takes 2 cpu of the new node, too: 1 + 1 + 2 of 4.
	name:   "move-daemons",
	groups: []pairGroup{{pool("dear-d", 0, 2, 8, 100), 1, 0, 0}, {pool("cheap-d", 0, 2, 4, 60), 0, 1, 1}},
	loads: []pairLoad{{name: "daemon-d", cpu: "2", daemon: true},
		{name: "moves-d", bound: []string{"dear-d-1", "dear-d-1"}, cpu: "1"}},
}, {
	// 2m more are too many.
	name:   "move-daemons-stays",
	groups: []pairGroup{one(pool("dear-e", 0, 2, 8, 100), 1), one(pool("cheap-e", 0, 2, 4, 60), 0)},
	loads: []pairLoad{{name: "daemon-e", cpu: "2", daemon: true},
		{name: "moves-e", bound: []string{"dear-e-1", "dear-e-1"}, cpu: "1001m"}},
}, {
	// Limits of 3 + 3 are at the line of 6. Of two groups the cheaper one grows.
	name: "move-line", groups: []pairGroup{{pool("dear-l", 0, 2, 8, 100), 1, 0, 0},
		one(pool("middle-l", 0, 2, 4, 70), 0), {pool("cheap-l", 0, 2, 4, 60), 0, 1, 1}},
	loads: []pairLoad{{name: "moves-l", bound: []string{"dear-l-1", "dear-l-1"}, cpu: "1", limit: "3"}},
}, {
	// 3.001 + 3.001 are above it.
	name:   "move-line-stays",
	groups: []pairGroup{one(pool("dear-m", 0, 2, 8, 100), 1), one(pool("cheap-m", 0, 2, 4, 60), 0)},
	loads:  []pairLoad{{name: "moves-m", bound: []string{"dear-m-1", "dear-m-1"}, cpu: "1", limit: "3001m"}},
}, {
	// The new node is in the zone of the volume, and not the cheapest.
	name: "move-volumes", groups: []pairGroup{{inZone("a", pool("dear-v", 0, 2, 8, 100)), 1, 0, 0},
		{inZone("a", pool("cheap-a", 0, 2, 4, 75)), 0, 1, 1}, one(inZone("b", pool("cheap-b", 0, 2, 4, 50)), 0)},
	loads: []pairLoad{{name: "moves-v", bound: []string{"dear-v-1"}, cpu: "1", zone: "a"}},
}, {
	// While the new node starts, the old one keeps its pod.
	name:   "move-starts",
	groups: []pairGroup{{pool("dear-n", 0, 2, 8, 100), 1, 1, 0}, {starting(pool("cheap-n", 0, 2, 4, 60)), 0, 1, 1}},
	loads:  []pairLoad{{name: "moves-n", bound: []string{"dear-n-1"}, cpu: "3"}},
	then:   func(s *scaled) { s.hasStarted("cheap-n-1") },
}, {
	// No move takes a node of a sized group, which is at 45 %.
	name:   "move-sized",
	groups: []pairGroup{one(pool("dear-z", 0, 2, 8, 100), 1), one(pool("cheap-z", 0, 2, 4, 60), 0)},
	loads:  []pairLoad{{name: "moves-z", bound: []string{"dear-z-1"}, cpu: "3600m"}},
}}

// The scheduler places pods as the autoscaler has planned, also where two families of rules act: each group has as many
// nodes in the end as counted by hand, and never more meanwhile. See test/pairs/README.md.
func TestPairs(t *testing.T) {
	t.Parallel()
	playPairs(t, slices.Concat(slackPairs, linePairs, drainPairs, growthPairs), "sized", "kept", "starves", "let")
}

// Moves wait until no group grows and no drain is under way: these pairs have a control plane of their own.
func TestPairsThatMove(t *testing.T) {
	t.Parallel()
	playPairs(t, movePairs, "dear-z")
}

// playPairs plays the pairs that PAIRS, a regular expression, names on one control plane. The nodes of sized groups
// follow from utilization alone.
func playPairs(t *testing.T, pairs []pair, sized ...string) {
	t.Helper()
	names := os.Getenv("PAIRS")
	if names == "" {
		t.Skip("make test-pairs plays them: loops of a second need a machine that does nothing else")
	}
	wanted := regexp.MustCompile(names)
	pairs = slices.DeleteFunc(pairs, func(p pair) bool { return !wanted.MatchString(p.name) })
	s := startPairs(t, pairs, sized...)
	began := time.Now()
	for _, p := range pairs {
		s.until(p.name+" to be held", func() []string { return s.held(p) })
	}
	t.Logf("all are held after %v", time.Since(began))
	time.Sleep(2 * unneededFor)
	for _, p := range pairs {
		for _, wrong := range s.held(p) {
			t.Errorf("%s is not held: %s", p.name, wrong)
		}
	}
	for _, p := range pairs {
		if p.then != nil {
			p.then(s)
		}
	}
	for _, p := range pairs {
		s.until(p.name+" to end", func() []string { return s.ended(p) })
	}
	t.Logf("all have ended after %v", time.Since(began))
	s.calm(10)
	for _, p := range pairs {
		for _, wrong := range s.ended(p) {
			t.Errorf("%s: %s", p.name, wrong)
		}
		for _, g := range p.groups {
			if _, most := s.cloud.Sizes(g.ID); most > max(g.start, g.held, g.end) {
				t.Errorf("%s: group %s has had %d nodes", p.name, g.ID, most)
			}
		}
	}
	if t.Failed() {
		t.Logf("nodes:\n%s\nstatus:\n%s", strings.Join(s.describe(), "\n"), s.status())
	}
	for _, deleted := range s.cloud.Deleted() {
		for _, pod := range deleted.Pods {
			if !strings.HasPrefix(pod.Name, "daemon") {
				t.Errorf("node %s was deleted with pod %s/%s", deleted.Node, pod.Namespace, pod.Name)
			}
		}
	}
	expectNothingForbidden(t, s.autoscaler.Process)
}
