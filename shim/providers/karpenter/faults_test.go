package karpenter

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	k8stesting "k8s.io/client-go/testing"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
)

// fail has requests of a kind fail with an error from the `first` one on, and returns what ends that.
func (w *world) fail(verb string, first int, err error) (end func()) {
	calls, on := 0, true
	w.objects.PrependReactor(verb, "nodeclaims", func(k8stesting.Action) (bool, runtime.Object, error) {
		calls++
		return on && calls >= first, nil, err
	})
	return func() { on = false }
}

var webhookDown = apierrors.NewInternalError(errors.New(`failed calling webhook "a.example.com": no service`))

// A claim that was launched and never registers is given up by its id; while Karpenter still terminates it, it counts
// no more, and what is bought in its place is another claim.
func TestStuckClaim(t *testing.T) {
	w := newWorld(t, managedPool)
	w.grow(small, 0, 1)
	stuck := w.claims()[0].Name
	w.launch(stuck)
	lingers := true // a finalizer holds it
	w.objects.PrependReactor("delete", "nodeclaims", func(k8stesting.Action) (bool, runtime.Object, error) {
		return lingers, nil, nil
	})
	if err := w.p.DeleteNodes(t.Context(), small, machine("aws:///"+stuck)); err != nil {
		t.Fatal(err)
	}
	w.change(stuck, func(object map[string]any) {
		object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-11-27T00:00:00Z"
	})
	w.expect(small, "0 of 999, aws DELETING")
	w.grow(small, 0, 1)
	if all := w.claims(); len(all) != 2 || all[0].Name == all[1].Name {
		t.Fatalf("%d claims", len(all))
	}
	lingers = false
	w.vanish(stuck)
	w.expect(small, "1 of 1000, nodeclaim CREATING") // and nothing of the first one
}

// A node whose claim somebody deletes by hand is no failure of the type, and is not deleted a second time.
func TestClaimDeletedByHand(t *testing.T) {
	w := newWorld(t, managedPool)
	w.grow(small, 0, 2)
	gone, stays := w.claims()[0].Name, w.claims()[1].Name
	w.register(gone)
	w.register(stays)
	w.expect(small, "2 of 1000, aws RUNNING, aws RUNNING")
	w.vanish(gone)
	if err := w.p.DeleteNodes(t.Context(), small, machine("aws:///"+gone)); err == nil || cloud.OutcomeUnknown(err) {
		t.Errorf("error %v", err)
	}
	w.expect(small, "1 of 1000, aws RUNNING")
	if all := w.claims(); len(all) != 1 || all[0].Name != stays {
		t.Errorf("claims %v", all)
	}
}

// Without its NodePool a claim is in no group, and nothing is done with it. With a NodePool of the same name it counts
// again; one that has vanished in between is no failure of its instance type.
func TestNodePoolIsDeletedUnderItsClaims(t *testing.T) {
	w := newWorld(t, managedPool)
	w.grow(small, 0, 3)
	gone, runs := w.claims()[0].Name, w.claims()[1].Name
	w.register(runs)
	w.expect(small, "3 of 1000, nodeclaim CREATING, aws RUNNING, nodeclaim CREATING")
	if err := w.objects.Resource(nodePools).Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.expect(small, "none")
	for _, err := range []error{w.p.IncreaseSize(t.Context(), small, 3, 1),
		w.p.DeleteNodes(t.Context(), small, machine("aws:///"+runs))} {
		if err == nil || cloud.OutcomeUnknown(err) || !strings.Contains(err.Error(), "there is no node group "+small) {
			t.Errorf("error %v", err)
		}
	}
	w.vanish(gone)
	w.expect(small, "none")
	w.add(managedPool)
	w.expect(small, "2 of 1000, aws RUNNING, nodeclaim CREATING")
	w.grow(small, 2, 1)
	if all := w.claims(); len(all) != 3 {
		t.Errorf("%d claims", len(all))
	}
}

// Two NodePools with the same requirements and labels have groups of their own, and none touches the claims of the
// other.
func TestTwoNodePoolsThatAreAlike(t *testing.T) {
	w := newWorld(t, managedPool, strings.NewReplacer("name: default", "name: other", "pool-uid", "other-uid").
		Replace(managedPool))
	const other = "other/m5.large/z1/on-demand"
	w.grow(small, 0, 1)
	w.grow(other, 0, 1)
	if all := w.claims(); len(all) != 2 || all[0].Name == all[1].Name {
		t.Fatalf("claims %v", all)
	}
	name := w.claims()[1].Name
	w.register(name)
	w.expect(small, "1 of 1000, nodeclaim CREATING")
	w.expect(other, "1 of 1000, aws RUNNING")
	if err := w.p.DeleteNodes(t.Context(), small, machine("aws:///"+name)); err == nil || len(w.claims()) != 2 {
		t.Errorf("%d claims, error %v", len(w.claims()), err)
	}
}

// A machine that was to go because it is no node yet, and has become one since, stays: it may have pods.
func TestClaimRegistersLate(t *testing.T) {
	w := newWorld(t, managedPool)
	w.grow(small, 0, 1)
	name := w.claims()[0].Name
	w.launch(name)
	late := machine("aws:///" + name)
	late[0].Annotations = map[string]string{cloud.WithoutNode: "unregistered"}
	w.register(name)
	if err := w.p.DeleteNodes(t.Context(), small, late); err == nil || cloud.OutcomeUnknown(err) ||
		!strings.Contains(err.Error(), "has become node node-"+name) {
		t.Errorf("error %v", err)
	}
	w.expect(small, "1 of 1000, aws RUNNING")
}

// A process that dies in the middle of growth leaves claims that the next one counts: the same request is refused, and
// the rest is bought once.
func TestRestartInTheMiddle(t *testing.T) {
	w := newWorld(t, managedPool)
	end := w.fail("create", 2, webhookDown)
	if err := w.p.IncreaseSize(t.Context(), small, 0, 3); !cloud.OutcomeUnknown(err) {
		t.Errorf("error %v", err)
	}
	end()
	p := w.restart()
	w.expect(small, "1 of 1000, nodeclaim CREATING")
	if err := p.IncreaseSize(t.Context(), small, 0, 3); !errors.Is(err, cloud.ErrChanged) || len(w.claims()) != 1 {
		t.Errorf("%d claims, error %v", len(w.claims()), err)
	}
	if err := p.IncreaseSize(t.Context(), small, 1, 2); err != nil || len(w.claims()) != 3 {
		t.Errorf("%d claims, error %v", len(w.claims()), err)
	}
}

// While a webhook is down no claim is made, and the error names the claim, its group and the webhook. Afterwards the
// same request succeeds.
func TestGrowthWithoutWebhook(t *testing.T) {
	w := newWorld(t, managedPool)
	end := w.fail("create", 1, webhookDown)
	err := w.p.IncreaseSize(t.Context(), small, 0, 2)
	if err == nil || cloud.OutcomeUnknown(err) || !strings.Contains(err.Error(), "NodeClaim default-") ||
		!strings.Contains(err.Error(), small) || !strings.Contains(err.Error(), `webhook "a.example.com"`) {
		t.Errorf("error %v", err)
	}
	w.expect(small, "0 of 1000")
	end()
	w.grow(small, 0, 2)
	w.expect(small, "2 of 1000, nodeclaim CREATING, nodeclaim CREATING")
}

// A claim whose deletion was refused is followed on: if Karpenter gives it up, that is a failure.
func TestClaimFailsAfterItsDeletionWasRefused(t *testing.T) {
	w := newWorld(t, managedPool)
	w.grow(small, 0, 1)
	name := w.claims()[0].Name
	w.expect(small, "1 of 1000, nodeclaim CREATING")
	end := w.fail("delete", 1, apierrors.NewForbidden(nodeClaims.GroupResource(), name, errors.New("no")))
	if err := w.p.DeleteNodes(t.Context(), small, machine("nodeclaim:///"+name)); err == nil {
		t.Error("no error")
	}
	end()
	w.expect(small, "1 of 1000, nodeclaim CREATING")
	w.vanish(name)
	w.expect(small, "1 of 1001, nodeclaim CREATING InsufficientCapacity/1")
}

// Nodes that cannot be deleted stay; after one of several was, nobody knows before the next look.
func TestDeletionFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(nodeClaims.GroupResource(), "", errors.New("no"))
	etcd := apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	for _, c := range []struct {
		name    string
		err     error
		first   int
		unknown bool
		text    string
	}{
		{"rights", forbidden, 1, false, "manifests/autoscaler/karpenter"},
		{"rights later", forbidden, 2, true, ""},
		{"webhook", webhookDown, 1, false, "webhook \"a.example.com\""},
		{"webhook later", webhookDown, 2, true, "webhook \"a.example.com\""},
		{"etcd", etcd, 1, true, "etcdserver"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, managedPool)
			w.grow(small, 0, 2)
			nodes := machine("aws:///" + w.claims()[0].Name)
			nodes = append(nodes, machine("aws:///"+w.claims()[1].Name)...)
			for _, claim := range w.claims() {
				w.register(claim.Name)
			}
			end := w.fail("delete", c.first, c.err)
			err := w.p.DeleteNodes(t.Context(), small, nodes)
			if err == nil || cloud.OutcomeUnknown(err) != c.unknown || !strings.Contains(err.Error(), c.text) ||
				!strings.Contains(err.Error(), "NodeClaim "+strings.TrimPrefix(nodes[c.first-1].Name, "aws:///")) ||
				len(w.claims()) != 3-c.first {
				t.Errorf("%d claims, error %v", len(w.claims()), err)
			}
			// The others still count, as nodes that run.
			want := "2 of 1000, aws RUNNING, aws RUNNING"
			if c.first == 2 {
				want = "1 of 1000, aws RUNNING"
			}
			w.expect(small, want)
			end()
		})
	}
}

// NodeClaims of another version, or that may not be listed, are no empty cluster.
func TestNoNodeClaimsAreListed(t *testing.T) {
	for text, err := range map[string]error{
		"has no nodeclaims of karpenter.sh/v1": apierrors.NewNotFound(nodeClaims.GroupResource(), ""),
		"see manifests/autoscaler/karpenter":   apierrors.NewForbidden(nodeClaims.GroupResource(), "", errors.New("no")),
	} {
		w := newWorld(t, managedPool)
		w.grow(small, 0, 1)
		end := w.fail("list", 1, err)
		if err := w.p.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want %q in it", err, text)
		}
		if err := w.p.IncreaseSize(t.Context(), small, 1, 1); err == nil || cloud.OutcomeUnknown(err) {
			t.Errorf("error %v", err)
		}
		end()
		w.expect(small, "1 of 1000, nodeclaim CREATING") // none of them has vanished
	}
}

// An API server that does not answer holds up no loop for ever: a look is an error, and after a change nobody knows.
func TestAPIServerHangs(t *testing.T) {
	w := newWorld(t, managedPool)
	var hangs atomic.Value // a method
	ended := make(chan struct{})
	front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == hangs.Load() {
			<-ended
			return
		}
		out.Header().Set("Content-Type", "application/json")
		of := nodePools
		if strings.HasSuffix(r.URL.Path, "nodeclaims") {
			of = nodeClaims
		}
		list, err := w.objects.Resource(of).List(r.Context(), metav1.ListOptions{})
		if err != nil {
			t.Error(err)
		}
		data, _ := list.MarshalJSON()
		_, _ = out.Write(data)
	}))
	defer front.Close()
	defer close(ended)
	objects, err := dynamic.NewForConfig(&rest.Config{Host: front.URL})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(DefaultOptions(), objects, []*loadlinev1.PriceCatalogue{{Name: "test", Csv: []byte(prices)}})
	if err != nil {
		t.Fatal(err)
	}
	p.callTime = 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	hangs.Store(http.MethodPost)
	if err := p.IncreaseSize(ctx, small, 0, 1); !cloud.OutcomeUnknown(err) || ctx.Err() != nil {
		t.Errorf("growth: error %v", err)
	}
	hangs.Store(http.MethodGet)
	if err := p.Refresh(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("a look: error %v", err)
	}
}
