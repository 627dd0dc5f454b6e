package autoscaler

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		const want = "no plan is made: the account of this process may not watch pods, list and watch deployments.apps " +
			"(a Deployment without pods keeps no copies free). `kubectl apply -f manifests/autoscaler/10-rbac.yaml -f manifests/autoscaler/drop-in/` gives it the rights"
		a.vitals.leads.Store(true)
		for i, problem := range []string{"not listed yet: ", "no loop has ended without an error yet: "} {
			if got := a.readiness()[i].Problem; got != problem+want {
				t.Errorf("/readyz says %q", got)
			}
		}
		if events := eventsOf(client); len(events) != 1 || events[0].Reason != "RightsMissing" ||
			!strings.HasSuffix(events[0].Message, want) || events[0].InvolvedObject.Name != options.StatusConfigMap ||
			events[0].Source.Component != "cluster-autoscaler" {
			t.Errorf("events %v", events)
		}
		given.Store(true)
		<-ended
		if problem := a.readiness()[0].Problem; problem != "not listed yet" {
			t.Errorf("/readyz says %q", problem)
		}
	})
}

// Rights of mode act are looked for too, by what is decided, and the manifests that give them are named: those of our
// own account, or those that bind the account of Cluster Autoscaler.
func TestMissingRightsToActAreNamed(t *testing.T) {
	const effect = "plans are not carried out as a whole: the account of this process may not "
	for name, c := range map[string]struct {
		options config.Configuration
		change  func(*config.Configuration)
		account string // of this process, as a user name
		refused string // as VERB RESOURCE SUBRESOURCE NAMESPACE/NAME, by expressions
		want    string
	}{
		"ObservesBuffers": {config.Default(), func(c *config.Configuration) {
			c.Mode, c.Slack.CapacityBuffers = config.Observe, true
		}, "", ".* capacitybuffers", "plans are made without some objects: the account of this process may not list " +
			"capacitybuffers.autoscaling.x-k8s.io (no room is kept for CapacityBuffers). `kubectl apply -f manifests/" +
			"autoscaler/capacity-buffers/` gives it the rights"},
		"BuffersOfOthers": {config.DropIn(), func(c *config.Configuration) {
			c.Decisions, c.Slack.CapacityBuffers, c.Slack.Keep = []string{config.SlackDecision}, true, config.SlackReport
		}, "", ".* capacitybuffers", effect + "patch capacitybuffers.autoscaling.x-k8s.io/status, list " +
			"capacitybuffers.autoscaling.x-k8s.io (no room is kept for CapacityBuffers). `kubectl apply -f manifests/" +
			"autoscaler/act-capacity-buffers/ -f manifests/autoscaler/capacity-buffers/` gives it the rights; bind it to " +
			"loadline-autoscaler:act-capacity-buffers and loadline-autoscaler:capacity-buffers too"},
		"BuffersOfNobody": {config.Default(), func(c *config.Configuration) {
			c.Decisions, c.Slack.CapacityBuffers = []string{config.ScaleUpDecision}, true
		}, "", ".* capacitybuffers", ""},
		"Observes": {config.DropIn(), func(c *config.Configuration) { c.Mode = config.Observe },
			"system:serviceaccount:kube-system:cluster-autoscaler", ".*", "plans are made without some objects: the account " +
				"of this process may not list and watch deployments.apps (a Deployment without pods keeps no copies free), " +
				"list and watch deviceclasses.resource.k8s.io (it is not known which extended resources are those of a device " +
				"class), list and watch namespaces (nothing is planned for pods whose affinity selects namespaces by label, " +
				"and no copies are kept free), list and watch csidrivers.storage.k8s.io (since Kubernetes 1.37 pods with " +
				"volumes are planned only for nodes that have the driver), list and watch leases.coordination.k8s.io " +
				"kube-system/cluster-autoscaler (watches that are behind are not noticed). `kubectl apply -f manifests/" +
				"autoscaler/10-rbac.yaml -f manifests/autoscaler/drop-in/` gives it the rights"},
		"ObservesWithoutLease": {config.Default(), func(c *config.Configuration) {
			c.Mode, c.LeaderElection.LeaderElect = config.Observe, false
		}, "", ".* leases", ""},
		"StockAccount": {config.DropIn(), nil, "system:serviceaccount:kube-system:cluster-autoscaler",
			"patch nodes|.* configmaps .*-state|.* deployments loadline-slack",
			effect + "get and update configmaps kube-system/cluster-autoscaler-state, patch nodes, list and create and patch " +
				"and delete deployments.apps in loadline-slack. `kubectl apply -f manifests/autoscaler/act/ -f manifests/" +
				"autoscaler/act-nodes/ -f manifests/autoscaler/slack/ -f manifests/autoscaler/drop-in-act/` gives it the rights"},
		"OwnAccount": {config.Default(), nil, "system:serviceaccount:kube-system:loadline-autoscaler",
			"patch nodes|create pods eviction",
			effect + "patch nodes, create pods/eviction. `kubectl apply -f manifests/autoscaler/act-nodes/` gives it the " +
				"rights"},
		"ScaleUpAlone": {config.Default(),
			func(c *config.Configuration) { c.Decisions = []string{config.ScaleUpDecision} }, "jane",
			".* nodes|.* pods|.* configmaps", effect + "get and update configmaps kube-system/loadline-autoscaler-state, get " +
				"and patch nodes. `kubectl apply -f manifests/autoscaler/act/ -f manifests/autoscaler/act-nodes/` gives it the " +
				"rights"},
		"StockAccountElsewhere": {config.DropIn(), func(c *config.Configuration) { c.Decisions = []string{"scale-down"} },
			"system:serviceaccount:scaling:ca", "patch nodes", effect + "patch nodes. `kubectl apply -f manifests/" +
				"autoscaler/act-nodes/ -f manifests/autoscaler/drop-in-act/` gives the rights to kube-system/" +
				"cluster-autoscaler, but this process runs as scaling/ca: edit the subjects of the bindings in drop-in-act/ " +
				"first"},
		"OwnAccountElsewhere": {config.Default(), nil, "system:serviceaccount:blue:loadline-autoscaler",
			"patch nodes|create deployments", effect + "patch nodes, create deployments.apps in loadline-slack. `kubectl " +
				"apply -f manifests/autoscaler/act-nodes/ -f manifests/autoscaler/slack/` gives the rights to kube-system/" +
				"loadline-autoscaler, but this process runs as blue/loadline-autoscaler: edit the subjects of the bindings in " +
				"act-nodes/ and slack/ first"},
		"SlackAlone": {config.Default(), func(c *config.Configuration) { c.Decisions = []string{config.SlackDecision} }, "",
			".* nodes|.* pods|create deployments", effect + "create deployments.apps in loadline-slack. `kubectl apply -f " +
				"manifests/autoscaler/slack/` gives it the rights"},
		"BuffersAndOrder": {config.DropIn(), func(c *config.Configuration) {
			c.Decisions = append(c.Decisions, config.DownscaleOrderDecision)
			c.Slack.Keep = config.SlackCapacityBuffers
		}, "", "patch pods|delete capacitybuffers", effect + "patch pods, delete capacitybuffers.autoscaling.x-k8s.io in " +
			"loadline-slack. `kubectl apply -f manifests/autoscaler/act-downscale-order/ -f manifests/autoscaler/" +
			"slack-capacitybuffers/` gives it the rights; bind it to loadline-autoscaler:act-downscale-order and " +
			"loadline-autoscaler:slack-capacitybuffers too"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.Resources = []*metav1.APIResourceList{{GroupVersion: "resource.k8s.io/v1"}}
			refused := regexp.MustCompile("^(" + c.refused + ")")
			client.PrependReactor("create", "selfsubjectaccessreviews",
				func(action clienttesting.Action) (bool, runtime.Object, error) {
					review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
					w := review.Spec.ResourceAttributes
					text := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s/%s", w.Verb, w.Resource, w.Subresource,
						w.Namespace, w.Name)), " ")
					review.Status.Allowed = !refused.MatchString(text)
					return true, review, nil
				})
			client.PrependReactor("create", "selfsubjectreviews",
				func(action clienttesting.Action) (bool, runtime.Object, error) {
					review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.SelfSubjectReview)
					review.Status.UserInfo.Username = c.account
					return true, review, nil
				})
			c.options.Mode = config.Act
			if c.change != nil {
				c.change(&c.options)
			}
			if got := missingRights(t.Context(), client, &c.options, true); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// The status warns of rights that are missing, until they are there.
func TestStatusWarnsOfMissingRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, func(c *config.Configuration) { c.Mode = config.Observe })
		b.addPod("pod", "n1", "1", nil)
		synctest.Wait()
		var missing atomic.Pointer[string]
		b.leader.missing = &missing
		for _, want := range []string{"", "patch nodes is missing", ""} {
			missing.Store(&want)
			b.run(30 * time.Second)
			if got := strings.Join(b.readStatus().Warnings, " "); got != want {
				t.Errorf("warnings %q, want %q", got, want)
			}
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
