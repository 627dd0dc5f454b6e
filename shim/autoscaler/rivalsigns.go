package autoscaler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/tell"
)

// object names a sign of a Cluster Autoscaler. Without a namespace it means those of all namespaces.
type object struct{ kind, namespace string }

// Kinds of signs.
const (
	leaseSign  = "lease"
	statusSign = "ConfigMap"
)

// renewal is how a sign looked last.
type renewal struct {
	content string
	since   time.Time // when that was first seen
}

// mostForeign is how many namespaces beside the trusted ones are looked at, each by a request in each loop: their
// leases are made by anybody.
const mostForeign = 8

// statusTime is for how long a status that does not change is one of a process that works. Cluster Autoscaler writes it
// in each loop, every 10 s by default; some have it look once a minute.
const statusTime = 2 * time.Minute

// leading returns the Cluster Autoscalers that lead now, by namespace.
func (r *rival) leading(ctx context.Context, now time.Time) (all []upstream, err error) {
	namespaces, err := r.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		holder, hasLease, err := r.leaseHolder(ctx, namespace, now)
		if err != nil {
			return nil, err
		}
		writes := false
		if holder == "" {
			if writes, err = r.writesStatus(ctx, namespace, hasLease, now); err != nil {
				return nil, err
			}
		}
		if holder != "" || writes {
			all = append(all, upstream{namespace: namespace, holder: holder})
		}
	}
	return all, nil
}

// namespaces returns those in which a Cluster Autoscaler may be: the trusted ones, and all that have a lease of its
// name. The API server answers the list from its cache; each lease is then read by itself.
func (r *rival) namespaces(ctx context.Context) ([]string, error) {
	list, err := r.client.CoordinationV1().Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0",
		FieldSelector: fields.OneTermEqualSelector("metadata.name", upstreamLease).String()})
	r.blind = apierrors.IsForbidden(err)
	if err = r.tolerate(object{kind: leaseSign}, err); err != nil {
		return nil, err
	}
	all := slices.Sorted(maps.Keys(r.trusted))
	if list == nil {
		return all, nil
	}
	var foreign []string
	for i := range list.Items {
		if item := &list.Items[i]; item.Name == upstreamLease && !r.trusted[item.Namespace] {
			foreign = append(foreign, item.Namespace)
		}
	}
	slices.Sort(foreign)
	return append(all, foreign[:min(len(foreign), mostForeign)]...), nil
}

// tolerate returns an error, unless it says that an object does not exist or may not be read. Of the latter the log has
// a line, once.
func (r *rival) tolerate(o object, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		if !r.refused[o] {
			klog.InfoS("Warning: without the right to read this, it is not known whether Cluster Autoscaler leads there; "+
				"manifests/autoscaler/10-rbac.yaml has the right", "kind", o.kind, "namespace", o.namespace, "err", err)
		}
		r.refused[o] = true
		return nil
	case err == nil || apierrors.IsNotFound(err):
		return nil
	}
	return fmt.Errorf("%s of Cluster Autoscaler: %w", o.kind, err)
}

// leaseHolder returns the holder of a lease that is renewed; empty: there is none, or it may not be read. It also says
// whether there is a lease at all.
func (r *rival) leaseHolder(ctx context.Context, namespace string, now time.Time) (holder string, exists bool,
	err error) {
	if r.ownLease && namespace == r.own {
		return "", true, nil
	}
	o := object{leaseSign, namespace}
	lease, err := r.client.CoordinationV1().Leases(namespace).Get(ctx, upstreamLease, metav1.GetOptions{})
	if err != nil {
		return "", false, r.tolerate(o, err)
	}
	delete(r.refused, o)
	s := lease.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" || s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return "", true, nil
	}
	if r.unchanged(o, contentOfLease(&s), now, now) >= time.Duration(*s.LeaseDurationSeconds)*time.Second {
		return "", true, nil
	}
	return *s.HolderIdentity, true, nil
}

func contentOfLease(s *coordinationv1.LeaseSpec) string {
	return *s.HolderIdentity + " " + s.RenewTime.String()
}

// writesStatus says whether the status of a Cluster Autoscaler is kept up to date. Beside a lease that nobody renews, a
// status counts only once it has changed: whoever had that lease has left it behind.
func (r *rival) writesStatus(ctx context.Context, namespace string, hasLease bool, now time.Time) (bool, error) {
	if r.ownStatus && namespace == r.own {
		return false, nil
	}
	o := object{statusSign, namespace}
	status, err := r.client.CoreV1().ConfigMaps(namespace).Get(ctx, upstreamStatus, metav1.GetOptions{})
	if err != nil {
		return false, r.tolerate(o, err)
	}
	first := writtenAt(status, now)
	if hasLease {
		first = now.Add(-statusTime)
	}
	content := status.Annotations[tell.LastUpdated] + " " + status.Data["status"]
	return r.unchanged(o, content, first, now) < statusTime, nil
}

// writtenAt returns since when a status is as it is, where it is seen for the first time: one that was left behind days
// ago keeps nobody from acting. It is now if the status does not tell, or tells a time to come.
func writtenAt(status *v1.ConfigMap, now time.Time) time.Time {
	at, err := time.Parse(tell.LastUpdatedLayout, status.Annotations[tell.LastUpdated])
	if age := time.Since(at); err == nil && age > 0 {
		return now.Add(-age)
	}
	return now
}

// unchanged returns for how long a sign has been as it is. `first` is since when one is that is new here.
func (r *rival) unchanged(o object, content string, first, now time.Time) time.Duration {
	was, known := r.renewals[o]
	switch {
	case !known:
		was = renewal{content, first}
	case was.content != content:
		was = renewal{content, now}
	}
	r.renewals[o] = was
	return now.Sub(was.since)
}
