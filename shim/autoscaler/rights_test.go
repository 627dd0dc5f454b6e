package autoscaler

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/watch"
)

// A process that may not watch all that plans are made from says within seconds which rights it lacks and which command
// gives them, until it has them. With all rights it says nothing.
func TestMissingRightsAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var given atomic.Bool
		client.PrependReactor("create", "selfsubjectaccessreviews",
			func(action clienttesting.Action) (bool, runtime.Object, error) {
				review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
				what := review.Spec.ResourceAttributes
				review.Status.Allowed = given.Load() || what.Resource != "deployments" && what.Resource+what.Verb != "podswatch"
				return true, review, nil
			})
		options := config.DropIn()
		a := &Autoscaler{config: &options, client: client, cluster: &watch.Cluster{}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan struct{})
		go func() { defer close(ended); a.FollowRights(ctx) }()
		time.Sleep(15 * time.Second)
		synctest.Wait()
		const want = "the account of this process may not watch pods, list and watch deployments.apps. `kubectl apply " +
			"-f manifests/autoscaler/10-rbac.yaml -f manifests/autoscaler/drop-in/` gives it the rights"
		if problem := a.readiness()[0].Problem; problem != "not listed yet: "+want {
			t.Errorf("/readyz says %q", problem)
		}
		if events := eventsOf(client); len(events) != 1 || events[0].Reason != "RightsMissing" ||
			!strings.HasSuffix(events[0].Message, want) || events[0].InvolvedObject.Name != options.StatusConfigMap {
			t.Errorf("events %v", events)
		}
		given.Store(true)
		<-ended
		if problem := a.readiness()[0].Problem; problem != "not listed yet" {
			t.Errorf("/readyz says %q", problem)
		}
	})
}

func eventsOf(client *fake.Clientset) (all []*v1.Event) {
	for _, action := range client.Actions() {
		if create, is := action.(clienttesting.CreateAction); is && action.GetResource().Resource == "events" {
			all = append(all, create.GetObject().(*v1.Event))
		}
	}
	return all
}
