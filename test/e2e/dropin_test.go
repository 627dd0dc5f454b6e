package e2e

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
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
	s.actAs("testdata/cluster-autoscaler-rbac.yaml")
	apply(t, s.ctx, s.cluster, dropInRights[0])
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

// actAs applies objects, among them the account of Cluster Autoscaler with its rights, and has autoscalers run under
// it.
func (s *scaled) actAs(file string) {
	s.t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	stock, err := harness.Objects(content)
	if err != nil {
		s.t.Fatal(err)
	}
	applyObjects(s.t, s.ctx, s.cluster, stock)
	s.kubeconfig, err = s.cluster.ServiceAccountKubeconfig(s.ctx, "kube-system", "cluster-autoscaler")
	if err != nil {
		s.t.Fatal(err)
	}
}

// Under exactly the rights of the stock roles of Cluster Autoscaler, the program makes plans. It says once what these
// lack, and which rights they need. Without the right to list disruption budgets there is no plan.
func TestStockRightsArePlannedWith(t *testing.T) {
	t.Parallel()
	const least = "list and watch deployments.apps (a Deployment without pods keeps no copies free), list and watch " +
		"deviceclasses.resource.k8s.io (it is not known which extended resources are those of a device class), "
	for _, c := range []struct{ name, role, lacks string }{
		{"cluster-autoscaler", "cluster-autoscaler", least + "list and watch leases"},
		{"cluster-api", "cluster-autoscaler-workload", least + "list and watch namespaces"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newGrowing(t, time.Second, []simcloud.Group{pool("pool", 0, 4, 4, 0.10)},
				"--leader-elect-resource-name=cluster-autoscaler", "--status-config-map-name=cluster-autoscaler-status",
				"--decisions=scale-up,scale-down")
			s.actAs("testdata/" + c.name + "-rbac.yaml")
			s.deploy("web", 4, "1500m")
			s.autoscaler = s.start("autoscaler", "observe")
			log := func() string {
				text, err := s.autoscaler.Log()
				if err != nil {
					t.Fatal(err)
				}
				return text
			}
			// Two pods of 1.5 cpu fit on a node of 4 cpu: 2 nodes for 4 pods.
			s.wait("a plan that grows the group by 2", func() bool {
				return strings.Contains(s.upstreamStatus(), "pool: 2 for pods")
			})
			s.waitWithin(time.Minute, "the rights that are missing", func() bool {
				return strings.Contains(log(), "plans are made without some objects: the account of this process may not "+
					c.lacks)
			})
			// One line when it is found out, and one when the status has it.
			if text := log(); strings.Count(text, "may not list") > 2 || strings.Contains(text, "Failed to watch") {
				t.Errorf("more than one warning: %s", text)
			}
			if err := s.autoscaler.Stop(); err != nil {
				t.Fatal(err)
			}
			s.forbidBudgets(c.role)
			ctx, cancel := context.WithTimeout(s.ctx, 30*time.Second)
			defer cancel()
			_, err := s.cluster.StartAutoscaler(ctx, "late", s.kubeconfig, s.config(), s.arguments("late", "observe")...)
			if err == nil || !strings.Contains(err.Error(), "not listed yet: no plan is made: the account of this process "+
				"may not list and watch poddisruptionbudgets.policy, "+least) {
				t.Errorf("without the right to list disruption budgets: %v", err)
			}
		})
	}
}

// forbidBudgets takes the right to list disruption budgets out of a role.
func (s *scaled) forbidBudgets(name string) {
	s.t.Helper()
	roles := s.cluster.Client.RbacV1().ClusterRoles()
	role, err := roles.Get(s.ctx, name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	role.Rules = slices.DeleteFunc(role.Rules,
		func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.APIGroups, "policy") })
	if _, err := roles.Update(s.ctx, role, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scaled) upstreamStatus() string {
	object, err := s.cluster.Client.CoreV1().ConfigMaps("kube-system").Get(s.ctx, "cluster-autoscaler-status",
		metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	return object.Data["status"]
}
