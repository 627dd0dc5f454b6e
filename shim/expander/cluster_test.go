package expander

import (
	"context"
	"errors"
	"testing"

	"loadline.dev/shim/api/loadlinev1"
)

// A policy that reads the pods of the cluster is asked about the cluster as the engine knows it; where the engine does
// not, the number of nodes has to do.
func TestTheClusterIsReadWhereTheEngineKnowsIt(t *testing.T) {
	at := &loadlinev1.Changes{View: "scheduler", Epoch: 7, BaseRevision: 3, Revision: 3}
	for name, c := range map[string]struct {
		cluster func(context.Context, func(*loadlinev1.Changes) error) error
		nodes   int32
		epoch   int64
	}{
		"Known": {func(_ context.Context, ask func(*loadlinev1.Changes) error) error { return ask(at) }, 0, 7},
		"NotTold": {func(context.Context, func(*loadlinev1.Changes) error) error {
			return errors.New("not told")
		}, 42, 0},
		"Forgotten": {func(_ context.Context, ask func(*loadlinev1.Changes) error) error {
			return errors.Join(ask(at), errors.New("no such epoch"))
		}, 42, 0},
		"NotAsked": {nil, 42, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got *loadlinev1.RankOptionsRequest
			conn := fakeEngine{rank: func(_ context.Context,
				request *loadlinev1.RankOptionsRequest) (*loadlinev1.RankOptionsResponse, error) {
				got = request
				return inOrder(1, 0), nil
			}}
			r := start(t, conn, Options{Nodes: func() (int, bool) { return 42, true }, Cluster: c.cluster})
			r.expect(generations[2].encode(t, twoGroups()), "large")
			if got.GetClusterNodes() != c.nodes || int64(got.GetChanges().GetEpoch()) != c.epoch {
				t.Errorf("asked about %v", got)
			}
			r.counts(map[string]float64{"ranked": 1, "fallback": 0}, nil, nil)
		})
	}
}
