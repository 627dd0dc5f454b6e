package extender

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
)

// If no scheduler asks, the engine gets the cluster for other doors if one wants it.
//
// The pods request 9 cpu and no memory, one of them 3: 2 cpu are what so many suit (2^5 <= 9^2 < 4^5), and the largest
// one has to fit.
func TestTheClusterIsKeptForOtherDoors(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		conn := enginetest.Open(t)
		g, err := New(Options{KeepsCluster: keeps}, conn, fake.NewClientset(proposalCluster()...))
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Ask(t.Context(), nil); !errors.Is(err, ErrNotTold) {
			t.Errorf("before it runs: error %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- g.serve(ctx, listeners{}) }()
		var response *loadlinev1.RankOptionsResponse
		ask := func(at *loadlinev1.Changes) (err error) {
			response, err = loadlinev1.NewAutoscalerClient(conn).RankOptions(ctx, &loadlinev1.RankOptionsRequest{
				Changes: at, Options: []*loadlinev1.ExpansionOption{{NodeGroup: "g", NodeCount: 1}},
				Policy: &loadlinev1.RankPolicy{Preset: loadlinev1.RankPolicy_CLUSTER_AUTOSCALER,
					PreferredTable: loadlinev1.RankPolicy_LEARNED}})
			return err
		}
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if err = g.Ask(ctx, ask); err == nil || !keeps && len(g.nodes.listed) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if !keeps {
			if !errors.Is(err, ErrNotTold) {
				t.Errorf("nobody wants it: error %v", err)
			}
			continue
		}
		if got := response.GetPreferredNode(); got.GetMilliCpu() != 3000 || response.GetClusterNodes() != 2 {
			t.Errorf("preferred node %v of a cluster of %d nodes", got, response.GetClusterNodes())
		}
	}
}
