package autoscaler

import (
	"maps"
	"testing"
	"testing/synctest"

	"loadline.dev/shim/api/loadlinev1"
)

// Nodes hear of a move that begins, and of one that is given up; in mode observe nobody does.
func TestNodesAreToldOfMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, nil)
		if err := b.cluster.Apply(); err != nil {
			t.Fatal(err)
		}
		plan := &loadlinev1.LoopReplacement{Begun: 1,
			Moves: []*loadlinev1.MoveUnderWay{{Phase: "draining", Remove: []string{"n2"}},
				{Phase: "ordered", Remove: []string{"n1"}, ToCome: 1}},
			Ended: []*loadlinev1.EndedMove{{Why: "a pod has no place", Remove: []string{"n2", "gone"}}}}
		b.teller.TellMoves(plan)
		want := map[string]string{"Replacement": "to be replaced, for less: n1 by 1 to come",
			"ReplacementGivenUp": "stays for now: a pod has no place"}
		if got := b.eventsSince(); !maps.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		b.config.Mode = "observe"
		if b.teller.TellMoves(plan); len(b.eventsSince()) > 0 {
			t.Error("events in mode observe")
		}
	})
}
