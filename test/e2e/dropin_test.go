package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/simcloud"
)

// Under the account of Cluster Autoscaler's own manifests, the program says which rights mode act lacks and which
// manifests give them. With these it adds nodes, keeps slack, drains nodes and stores its state, and no request is
// forbidden.
func TestAccountOfClusterAutoscaler(t *testing.T) {
	t.Parallel()
	groups := []simcloud.Group{pool("pool", 0, 4, 4, 0.10)}
	s := newGrowing(t, time.Second, groups, "--leader-elect-resource-name=cluster-autoscaler",
		"--status-config-map-name=cluster-autoscaler-status", "--extra-capacity-min-rate=10%",
		"--scale-down-unneeded-time=4s", "--scale-down-delay-after-add=2s", "--slack-removal-delay=2s")
	content, err := os.ReadFile("testdata/cluster-autoscaler-rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	stock, err := harness.Objects(content)
	if err != nil {
		t.Fatal(err)
	}
	applyObjects(t, s.ctx, s.cluster, stock)
	apply(t, s.ctx, s.cluster, dropInRights[0])
	if s.kubeconfig, err = s.cluster.ServiceAccountKubeconfig(s.ctx, "kube-system", "cluster-autoscaler"); err != nil {
		t.Fatal(err)
	}
	s.autoscaler = s.start("autoscaler", "act")
	s.waitWithin(time.Minute, "the line that names the manifests", func() bool {
		log, err := s.autoscaler.Log()
		return err == nil && strings.Contains(log, "may not get and update configmaps kube-system/"+
			"cluster-autoscaler-state, patch nodes, create and patch and delete deployments.apps in "+
			"loadline-slack. `kubectl apply -f manifests/autoscaler/act/ -f manifests/autoscaler/act-nodes/ "+
			"-f manifests/autoscaler/slack/ -f manifests/autoscaler/drop-in-act/` gives it the rights")
	})
	apply(t, s.ctx, s.cluster, dropInRights[1])
	if err := s.autoscaler.Stop(); err != nil {
		t.Fatal(err)
	}
	before, err := s.autoscaler.Log()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.autoscaler.Restart(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.deploy("web", 4, "1500m")
	s.waitRunning("web", 4)
	s.wait("slack", func() bool { return s.standing() > 0 })
	s.deploy("web", 1, "500m")
	s.wait("nodes to go", func() bool { return len(s.nodes()) <= 2 && len(s.busy()) == 0 })
	state, err := s.cluster.Client.CoreV1().ConfigMaps("kube-system").Get(s.ctx, "cluster-autoscaler-state",
		metav1.GetOptions{})
	if err != nil || len(state.BinaryData) == 0 {
		t.Errorf("state %v, error %v", state.BinaryData, err)
	}
	s.checkSizes(groups...)
	log, err := s.autoscaler.Log()
	if log = strings.TrimPrefix(log, before); err != nil || strings.Contains(strings.ToLower(log), "forbidden") {
		t.Errorf("with all rights, error %v:\n%s", err, log)
	}
}
