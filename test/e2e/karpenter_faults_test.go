package e2e

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/providers/karpenter"
)

// Autoscaler and Karpenter end in the middle of growth, and in the middle of a drain, and are started again one after
// the other. The autoscaler counts the NodeClaims that nobody launches meanwhile, and those that nobody terminates:
// nothing is bought twice, and nothing is deleted with pods.
func TestKarpenterAndAutoscalerAreKilled(t *testing.T) {
	t.Parallel()
	a := startActing(t)
	a.start("autoscaler", "--decisions=scale-up,scale-down", "--max-node-provision-time=15m")
	a.karpenter.Kill()
	a.deploy("base", 2, "1000m")
	a.wait("two NodeClaims", func() bool { return a.claims.made() == "2 small" })
	a.kill()
	a.waitLoops(5)
	a.check("2 small")
	a.must(a.karpenter.Restart(a.ctx))
	a.load.waitRunning("base", 2)
	a.wait("nodes that Karpenter has initialized", func() bool { return a.initialized() == 2 })
	a.deploy("web", 2, "800m")
	a.load.waitRunning("web", 2)

	a.karpenter.Kill()
	a.deploy("base", 0, "1000m")
	a.wait("a node that is drained", func() bool { return len(a.load.busy()) > 0 })
	a.kill()
	a.wait("a NodeClaim that is being deleted", func() bool { return a.claims.going() == 1 })
	a.kill()
	a.waitLoops(5)
	if nodes := a.nodes(); len(nodes) != 2 || a.claims.going() != 1 {
		t.Errorf("without Karpenter there are nodes %v, and %d NodeClaims are being deleted, want 2 and 1", nodes,
			a.claims.going())
	}
	a.must(a.karpenter.Restart(a.ctx))
	a.wait("the node to go", func() bool { return len(a.list(nodeClaims)) == 1 && len(a.nodes()) == 1 })
	a.waitLoops(5)
	a.load.waitRunning("web", 2)
	a.check("2 small")
	if deletions := a.requests("delete", "nodeclaims"); len(deletions) == 0 || a.claims.going() != 1 {
		t.Errorf("NodeClaims were deleted by %v, %d of them", deletions, a.claims.going())
	}
	expectNothingForbidden(t, a.load.autoscaler.Process)
}

// kill ends the autoscaler without notice and starts it again.
func (a *acting) kill() {
	a.Helper()
	a.load.autoscaler.Kill()
	a.must(a.load.autoscaler.Restart(a.ctx))
}

// Two providers that know nothing of each other ask for machines of the same group at once, from the same target. One
// of them gets them, and the other hears that the group has changed.
func TestKarpenterHasTwoOwners(t *testing.T) {
	t.Parallel()
	k := startKarpenter(t)
	owners := []*karpenter.Provider{k.provider(), k.provider()}
	for round := range 10 {
		const each = 2
		var targets []int
		for _, p := range owners {
			targets = append(targets, k.group(p).Target)
		}
		if want := round * each; !slices.Equal(targets, []int{want, want}) {
			t.Fatalf("round %d: the owners see targets of %v, want %d", round, targets, want)
		}
		errs := make([]error, len(owners))
		var asking sync.WaitGroup
		for i, p := range owners {
			asking.Go(func() { errs[i] = p.IncreaseSize(k.ctx, smallGroup, targets[i], each) })
		}
		asking.Wait()
		slices.SortFunc(errs, func(a, b error) int { return len(errorText(a)) - len(errorText(b)) })
		if errs[0] != nil || !errors.Is(errs[1], cloud.ErrChanged) || cloud.OutcomeUnknown(errs[1]) {
			t.Errorf("round %d: errors %v, want one that says that the group has changed", round, errs)
		}
		if claims := k.list(nodeClaims); len(claims) != (round+1)*each {
			t.Errorf("round %d: %d NodeClaims, want %d", round, len(claims), (round+1)*each)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Two autoscalers act on one NodePool, since their leases do not know of each other. For pods that wait they buy once,
// and what both remove has no pods.
func TestTwoAutoscalersWithKarpenter(t *testing.T) {
	t.Parallel()
	a := startActing(t)
	first := a.start("first", "--decisions=scale-up,scale-down", "--leader-elect=false")
	a.start("second", "--decisions=scale-up,scale-down", "--leader-elect=false")
	for _, pods := range []int32{1, 3, 4, 6} {
		a.deploy("web", pods, "1500m")
		a.load.waitRunning("web", int(pods))
		a.waitLoops(3)
	}
	a.check("6 small")
	a.wait("nodes that Karpenter has initialized", func() bool { return a.initialized() == 6 })
	a.deploy("web", 2, "1500m")
	a.wait("four nodes to go", func() bool { return len(a.list(nodeClaims)) == 2 && len(a.nodes()) == 2 })
	a.waitLoops(5)
	a.load.waitRunning("web", 2)
	a.check("6 small")
	for _, autoscaler := range []interface{ Running() bool }{first, a.load.autoscaler} {
		if !autoscaler.Running() {
			t.Error("one of the autoscalers has ended")
		}
	}
}
