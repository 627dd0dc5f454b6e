package autoscaler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
)

// Names of Cluster Autoscaler's objects.
const (
	upstreamName      = "Cluster Autoscaler"
	upstreamLease     = config.UpstreamLease
	upstreamStatus    = config.UpstreamStatus
	upstreamNamespace = "kube-system" // by default
)

// rival finds the Cluster Autoscalers that lead beside this process, in any namespace that it may look at. One leads
// while its lease is renewed, or its status is: a lease may have another name, and the status has a fixed one. Both are
// judged by how they change from loop to loop, since the clock of another machine may be a different one.
type rival struct {
	client kubernetes.Interface
	// own is the namespace of this process; ownLease and ownStatus say that it has the names of Cluster Autoscaler there.
	own                 string
	ownLease, ownStatus bool
	// trusted are the namespaces in which a Cluster Autoscaler holds this process back. Whoever may write a lease in some
	// other namespace must not be able to.
	trusted map[string]bool
	// named says that the configuration names some of them; blind, that leases of others may not be listed.
	named, blind bool
	// renewals are the objects as they were last, by kind and namespace.
	renewals map[object]renewal
	refused  map[object]bool // objects that may not be read, which has been logged
}

// upstream is a Cluster Autoscaler that leads.
type upstream struct {
	namespace string
	holder    string // of its lease; empty: its status alone shows it
}

// newRival returns nil where no Cluster Autoscaler can be in the way, since nothing is done.
func newRival(c *config.Configuration, client kubernetes.Interface) *rival {
	if c.Mode != config.Act {
		return nil
	}
	trusted := map[string]bool{upstreamNamespace: true, c.Namespace: true}
	for _, namespace := range c.UpstreamNamespaces {
		trusted[namespace] = true
	}
	return &rival{client: client, own: c.Namespace, trusted: trusted, named: len(c.UpstreamNamespaces) > 0,
		ownLease:  c.LeaderElection.LeaderElect && c.LeaderElection.ResourceName == upstreamLease,
		ownStatus: c.StatusConfigMap == upstreamStatus,
		renewals:  map[object]renewal{}, refused: map[object]bool{}}
}

// acts says which groups a Cluster Autoscaler acts on, by its status; all of them if that does not tell.
func (r *rival) acts(ctx context.Context, namespace string) func(group string) bool {
	var status struct {
		NodeGroups []struct {
			Name string `json:"name"`
		} `json:"nodeGroups"`
	}
	object, err := r.client.CoreV1().ConfigMaps(namespace).Get(ctx, upstreamStatus, metav1.GetOptions{})
	if err == nil {
		err = yaml.Unmarshal([]byte(object.Data["status"]), &status)
	}
	names := map[string]bool{}
	for _, g := range status.NodeGroups {
		names[g.Name] = true
	}
	return func(group string) bool { return err != nil || len(names) == 0 || names[group] }
}

// yield leaves the groups alone on which a Cluster Autoscaler acts: two that grow the same groups buy twice. Where this
// process decides no growth, both can work, and the warnings say what has to be so. One that seems to lead in a
// namespace of somebody else is a warning alone.
func (r *rival) yield(ctx context.Context, groups []cloud.Group, grows, removes bool, now time.Time) (
	warnings []string, err error) {
	if r == nil || !grows && !removes {
		return nil, nil
	}
	leading, err := r.leading(ctx, now)
	if err != nil {
		return nil, err
	}
	if r.blind && !r.named { // who names namespaces knows where to look
		warnings = append(warnings, fmt.Sprintf("a Cluster Autoscaler outside of %s is not seen, because leases may not be "+
			"listed: apply manifests/autoscaler/10-rbac.yaml, or name its namespace by --cluster-autoscaler-namespace",
			strings.Join(slices.Sorted(maps.Keys(r.trusted)), " and ")))
	}
	for _, namespace := range slices.Sorted(maps.Keys(r.trusted)) {
		if r.refused[object{leaseSign, namespace}] && r.refused[object{statusSign, namespace}] {
			warnings = append(warnings, fmt.Sprintf("it is not known whether a Cluster Autoscaler leads in %s: its lease and "+
				"status may not be read; manifests/autoscaler/10-rbac.yaml has the right", namespace))
		}
	}
	for _, one := range leading {
		if !grows {
			warnings = append(warnings, fmt.Sprintf("Cluster Autoscaler leads too (%s): it must have "+
				"--scale-down-enabled=false", one))
			continue
		}
		if !r.trusted[one.namespace] {
			warnings = append(warnings, fmt.Sprintf("Cluster Autoscaler seems to lead too (%s): if it does, end one of both, "+
				"or add --cluster-autoscaler-namespace=%s, and its groups are left alone", one, one.namespace))
			continue
		}
		acts := r.acts(ctx, one.namespace)
		for i := range groups {
			if g := &groups[i]; g.Problem == nil && acts(g.ID) {
				g.Problem = fmt.Errorf("%s acts on it: %s", upstreamName, one)
			}
		}
	}
	return warnings, nil
}

// String says what shows that it leads.
func (u upstream) String() string {
	if u.holder == "" {
		return fmt.Sprintf("it keeps writing ConfigMap %s/%s", u.namespace, upstreamStatus)
	}
	return fmt.Sprintf("%s holds lease %s/%s", u.holder, u.namespace, upstreamLease)
}
