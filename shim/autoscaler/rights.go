package autoscaler

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/tell"
)

// When rights are looked at: a moment after the start, so that a slow API server is no reason to say anything, and
// again for as long as some are missing.
const (
	rightsFirst = 10 * time.Second
	rightsAgain = 30 * time.Second
)

// watched are the resources that plans are made from, as GROUP/RESOURCE. Without the right to list and watch one of
// them there is no plan: a kind that nobody sees would count as absent.
var watched = []string{"/nodes", "/pods", "/namespaces", "/persistentvolumes", "/persistentvolumeclaims",
	"/replicationcontrollers", "apps/replicasets", "apps/statefulsets", "apps/daemonsets", "apps/deployments",
	"batch/jobs", "policy/poddisruptionbudgets", "storage.k8s.io/storageclasses", "storage.k8s.io/csinodes",
	"storage.k8s.io/csidrivers"}

// FollowRights says in log, events and /readyz which rights this process lacks, and how it gets them, until it has
// them or the context ends.
func (a *Autoscaler) FollowRights(ctx context.Context) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: a.client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: tell.Component})
	status := &v1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: a.config.Namespace,
		Name: a.config.StatusConfigMap}
	said := ""
	for wait := rightsFirst; ; wait = rightsAgain {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		text := ""
		if !a.cluster.Ready() { // else all that is watched was listed
			text = missingRights(ctx, a.client, a.config)
		}
		a.vitals.missing.Store(&text)
		if text == "" || ctx.Err() != nil {
			return
		}
		if text != said {
			klog.InfoS("Warning: no plan is made: " + text)
			recorder.Event(status, v1.EventTypeWarning, "RightsMissing", "no plan is made: "+text)
		}
		said = text
	}
}

// missingRights returns which rights of those that plans need are missing, and how to get them; empty: none is, or the
// API server does not tell.
func missingRights(ctx context.Context, client kubernetes.Interface, c *config.Configuration) string {
	var missing []string
	for _, resource := range watched {
		group, name, _ := strings.Cut(resource, "/")
		var verbs []string
		for _, verb := range []string{"list", "watch"} {
			if isRefused(ctx, client, &authorizationv1.ResourceAttributes{Group: group, Resource: name, Verb: verb}) {
				verbs = append(verbs, verb)
			}
		}
		if len(verbs) > 0 {
			missing = append(missing, strings.Join(verbs, " and ")+" "+strings.Trim(name+"."+group, "."))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	files := "-f manifests/autoscaler/10-rbac.yaml"
	if c.LeaderElection.ResourceName == upstreamLease {
		files += " -f manifests/autoscaler/drop-in/"
	}
	return fmt.Sprintf("the account of this process may not %s. `kubectl apply %s` gives it the rights",
		strings.Join(missing, ", "), files)
}

// isRefused says whether the API server refuses a request of this process.
func isRefused(ctx context.Context, client kubernetes.Interface, what *authorizationv1.ResourceAttributes) bool {
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
		&authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: what}}, metav1.CreateOptions{})
	return err == nil && !answer.Status.Allowed && answer.Status.EvaluationError == ""
}
