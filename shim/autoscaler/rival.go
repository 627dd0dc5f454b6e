package autoscaler

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
)

// Names of Cluster Autoscaler's objects.
const (
	upstreamName   = "Cluster Autoscaler"
	upstreamLease  = "cluster-autoscaler"
	upstreamStatus = "cluster-autoscaler-status"
)

// rival is a Cluster Autoscaler that may lead beside this process, in the same namespace. It leads while its lease is
// renewed: by how the lease changes from loop to loop, since its clock may be another one.
type rival struct {
	client    kubernetes.Interface
	namespace string
	renewed   metav1.MicroTime // as last seen
	seen      time.Time        // when that was first seen; zero: no lease was seen
	refused   bool             // the lease may not be read, which has been logged
}

// newRival returns nil where no Cluster Autoscaler can be in the way: nothing is done, or its lease is this process's.
func newRival(c *config.Configuration, client kubernetes.Interface) *rival {
	if c.Mode != config.Act || c.LeaderElection.LeaderElect && c.LeaderElection.ResourceName == upstreamLease {
		return nil
	}
	return &rival{client: client, namespace: c.Namespace}
}

// leader returns who holds the lease of Cluster Autoscaler; empty: nobody does, or it may not be read.
func (r *rival) leader(ctx context.Context, now time.Time) (string, error) {
	lease, err := r.client.CoordinationV1().Leases(r.namespace).Get(ctx, upstreamLease, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		if !r.refused {
			klog.InfoS("Warning: without the right to read its lease nobody knows whether Cluster Autoscaler leads too",
				"lease", klog.KRef(r.namespace, upstreamLease))
		}
		r.refused = true
		return "", nil
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("lease of Cluster Autoscaler: %w", err)
	}
	s := lease.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" || s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return "", nil
	}
	if r.seen.IsZero() || !r.renewed.Equal(s.RenewTime) {
		r.renewed, r.seen = *s.RenewTime, now
	}
	if now.Sub(r.seen) >= time.Duration(*s.LeaseDurationSeconds)*time.Second {
		return "", nil
	}
	return *s.HolderIdentity, nil
}

// acts says which groups Cluster Autoscaler acts on, by its status; all of them if that does not tell.
func (r *rival) acts(ctx context.Context) func(group string) bool {
	var status struct {
		NodeGroups []struct {
			Name string `json:"name"`
		} `json:"nodeGroups"`
	}
	object, err := r.client.CoreV1().ConfigMaps(r.namespace).Get(ctx, upstreamStatus, metav1.GetOptions{})
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
// process decides no growth, both can work, and the warnings say what has to be so.
func (r *rival) yield(ctx context.Context, groups []cloud.Group, grows, removes bool, now time.Time) (
	warnings []string, err error) {
	if r == nil {
		return nil, nil
	}
	leader, err := r.leader(ctx, now)
	switch {
	case err != nil || leader == "" || !grows && !removes:
		return nil, err
	case !grows:
		return []string{fmt.Sprintf("Cluster Autoscaler leads too (%s): it must have --scale-down-enabled=false",
			leader)}, nil
	}
	acts := r.acts(ctx)
	for i := range groups {
		if g := &groups[i]; g.Problem == nil && acts(g.ID) {
			g.Problem = fmt.Errorf("%s acts on it: %s holds lease %s/%s", upstreamName, leader, r.namespace, upstreamLease)
		}
	}
	return nil, nil
}
