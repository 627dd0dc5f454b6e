package e2e

import (
	"regexp"
	"testing"
)

// Somebody follows the commands of docs/platforms.md for Cluster API. In mode observe the status says what the
// autoscaler would do, and no machine is made; in mode act the pods that wait run on new machines, and machines that
// are no longer needed are deleted. The bill is that of the one that is left.
func TestPlatformsPageWithClusterAPI(t *testing.T) {
	t.Parallel()
	c := startClusterAPI(t)
	f := follow(t, c.ctx, c.cluster, "## Cluster API")
	f.flags = []string{"--scale-down-delay-after-add=1s", "--scale-down-unneeded-time=3s", "--slack-removal-delay=1s",
		"--node-delete-delay-after-taint=1s"}
	startPlainScheduler(t, c.ctx, c.cluster)
	f.deploy(3, "")

	f.next("kubectl apply ")
	f.next("loadline autoscaler --cloud=cluster-api ")
	f.plans(mdGroup)
	if made := c.names(capiMachines); c.replicas() != 0 || len(made) != 0 {
		t.Errorf("in mode observe there are %d replicas, machines %v", c.replicas(), made)
	}
	f.next("kubectl apply ")
	f.next("loadline autoscaler --cloud=cluster-api --mode=act")
	f.step("all pods run on new machines", func() bool { return len(c.running()) == 3 })
	f.acts()
	f.deploy(1, "")
	f.step("the machines that are not needed are gone", func() bool {
		return len(c.nodes()) == 1 && len(c.names(capiMachines)) == 1 && c.replicas() == 1
	})
	if len(c.running()) != 1 {
		t.Errorf("pods that run: %v, want one", c.running())
	}
	if out := f.next("loadline bill "); !regexp.MustCompile(`(?m)^md-\S+ +1 +0\.`).MatchString(out) {
		t.Errorf("the bill is not that of one node:\n%s", out)
	}
	f.end()
}
