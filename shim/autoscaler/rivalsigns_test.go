package autoscaler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/tell"
)

// rivalCase is where a Cluster Autoscaler is, and what this process is like.
type rivalCase struct {
	lease, status string // namespaces of what it renews; empty: it has none
	own           string // namespace of this process
	named         string // by --cluster-autoscaler-namespace
	dropIn        bool   // it has the names of Cluster Autoscaler
	noList        bool   // it may not list leases of all namespaces
	noRead        bool   // it may not read lease and status of the named one
	written       string // when its status was written
	stays         bool   // it renews nothing
	want          string // the problem of the group, or what the warning contains
}

// signsOf are the objects of a Cluster Autoscaler after its n-th loop.
func (c *rivalCase) signsOf(n int) (all []runtime.Object) {
	if c.stays {
		n = 0
	}
	if c.lease != "" {
		all = append(all, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: c.lease, Name: upstreamLease},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: new("ca-0"), LeaseDurationSeconds: new(int32(15)),
				RenewTime: new(metav1.NewMicroTime(time.Unix(int64(n), 0)))}})
	}
	if c.status != "" {
		all = append(all, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.status, Name: upstreamStatus,
			Annotations: map[string]string{tell.LastUpdated: c.written}},
			Data: map[string]string{"status": fmt.Sprintf("time: %d", n)}})
	}
	return all
}

// problemAfter returns the problem of a group after three minutes of loops, or the warnings where it has none.
func (c *rivalCase) problemAfter(t *testing.T) string {
	t.Helper()
	options := config.Default()
	if c.dropIn {
		options = config.DropIn()
	}
	options.Mode, options.Namespace = config.Act, c.own
	if c.named != "" {
		options.UpstreamNamespaces = []string{c.named}
	}
	r := newRival(&options, nil)
	if r == nil {
		return ""
	}
	problem := ""
	for n := range 19 {
		client := fake.NewClientset(c.signsOf(n)...)
		if c.noList {
			client.PrependReactor("list", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), upstreamLease, nil)
			})
		}
		if c.noRead {
			client.PrependReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				return action.GetNamespace() == c.named, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", nil)
			})
		}
		r.client = client
		groups := []cloud.Group{{ID: "a"}}
		warnings, err := r.yield(t.Context(), groups, true, true, time.Unix(1e9+int64(10*n), 0))
		if err != nil {
			t.Fatal(err)
		}
		problem = strings.Join(warnings, "\n")
		if groups[0].Problem != nil {
			problem = groups[0].Problem.Error()
		}
	}
	return problem
}

// A Cluster Autoscaler is found in every namespace whose leases may be listed, in its default one in any case, and by
// its status where its lease has another name. One that renews nothing any more is in nobody's way, and neither are the
// lease and the status of this process. In a namespace of others a lease is a warning, unless the namespace is named:
// anybody there may make one.
func TestClusterAutoscalerIsFoundAnywhere(t *testing.T) {
	const acts = "Cluster Autoscaler acts on it: "
	const infra = "Cluster Autoscaler seems to lead too (ca-0 holds lease infra/cluster-autoscaler): if it does, end " +
		"one of both, or add --cluster-autoscaler-namespace=infra, and its groups are left alone"
	const grant = "apply manifests/autoscaler/10-rbac.yaml, or name its namespace by --cluster-autoscaler-namespace"
	now := time.Now().Format(tell.LastUpdatedLayout)
	for name, c := range map[string]rivalCase{
		"InItsDefaultNamespace": {lease: "kube-system", own: "loadline", noList: true,
			want: acts + "ca-0 holds lease kube-system/cluster-autoscaler"},
		"InAnyNamespace": {lease: "infra", own: "kube-system", want: infra},
		"InItsNamespace": {lease: "infra", own: "infra", want: acts + "ca-0 holds lease infra/cluster-autoscaler"},
		"NotListed": {lease: "infra", own: "kube-system", noList: true,
			want: "a Cluster Autoscaler outside of kube-system is not seen, because leases may not be listed: " + grant},
		"NotListedFromAnotherNamespace": {lease: "infra", own: "loadline", noList: true, want: "a Cluster Autoscaler " +
			"outside of kube-system and loadline is not seen, because leases may not be listed: " + grant},
		"NamedAndNotRead": {lease: "infra", own: "kube-system", named: "infra", noList: true, noRead: true,
			want: "it is not known whether a Cluster Autoscaler leads in infra: its lease and status may not be read; " +
				"manifests/autoscaler/10-rbac.yaml has the right"},
		"NotListedAndAnotherIsNamed": {lease: "infra", own: "kube-system", named: "other", noList: true},
		"InANamedNamespace": {lease: "infra", own: "kube-system", named: "infra",
			want: acts + "ca-0 holds lease infra/cluster-autoscaler"},
		"NamedAndNotListed": {lease: "infra", own: "kube-system", named: "infra", noList: true,
			want: acts + "ca-0 holds lease infra/cluster-autoscaler"},
		"StatusInANamedNamespace": {status: "infra", own: "kube-system", named: "infra", noList: true, written: now,
			want: acts + "it keeps writing ConfigMap infra/cluster-autoscaler-status"},
		"AnotherIsNamed":         {lease: "infra", own: "kube-system", named: "other", want: infra},
		"StaysInANamedNamespace": {lease: "infra", own: "kube-system", named: "infra", stays: true},
		"BesideADropIn":          {lease: "infra", own: "kube-system", dropIn: true, want: infra},
		"OwnLease":               {lease: "kube-system", status: "kube-system", own: "kube-system", dropIn: true},
		"LeaseStays":             {lease: "infra", own: "kube-system", stays: true},
		"LeaseOfAnotherName": {status: "kube-system", own: "loadline", noList: true, written: now,
			want: acts + "it keeps writing ConfigMap kube-system/cluster-autoscaler-status"},
		"StatusStays":      {status: "kube-system", own: "loadline", written: now, stays: true},
		"StatusWithoutAge": {status: "kube-system", own: "loadline", stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.problemAfter(t); got != c.want {
				t.Errorf("problem %q, want %q", got, c.want)
			}
		})
	}
}

// A status that was left behind days ago keeps nobody from acting in the first loop; one that was written just now
// does.
func TestStatusThatWasLeftBehind(t *testing.T) {
	for written, want := range map[string]bool{time.Now().Add(-72 * time.Hour).Format(tell.LastUpdatedLayout): false,
		time.Now().Add(-time.Second).Format(tell.LastUpdatedLayout): true, "": true} {
		c := rivalCase{status: "kube-system", written: written}
		options := config.Default()
		options.Mode, options.Namespace = config.Act, "loadline"
		groups := []cloud.Group{{ID: "a"}}
		r := newRival(&options, fake.NewClientset(c.signsOf(0)...))
		if _, err := r.yield(t.Context(), groups, true, true, time.Now()); err != nil || (groups[0].Problem != nil) != want {
			t.Errorf("written %q: problem %v, error %v", written, groups[0].Problem, err)
		}
	}
}

// Leases of tenants cost few requests in each loop, however many there are.
func TestLeasesOfTenantsAreBounded(t *testing.T) {
	var leases []runtime.Object
	for i := range 100 {
		c := rivalCase{lease: fmt.Sprintf("tenant-%02d", i)}
		leases = append(leases, c.signsOf(0)...)
	}
	options := config.Default()
	options.Mode, options.Namespace = config.Act, "loadline"
	client := fake.NewClientset(leases...)
	groups := []cloud.Group{{ID: "a"}}
	warnings, err := newRival(&options, client).yield(t.Context(), groups, true, true, time.Now())
	if err != nil || groups[0].Problem != nil || len(warnings) != mostForeign {
		t.Errorf("%d warnings, problem %v, error %v", len(warnings), groups[0].Problem, err)
	}
	if requests := len(client.Actions()); requests > 2*(mostForeign+2)+1 {
		t.Errorf("%d requests", requests)
	}
}
