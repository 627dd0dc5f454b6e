package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"loadline.dev/test/e2e/harness"
)

// acting is a control plane with Karpenter, and what autoscalers need that act by NodeClaims.
type acting struct {
	*kwoked
	load       *scaled // deploys and watches pods; it has no cloud of its own
	engine     *harness.Engine
	kubeconfig string
	config     string // file
	claims     *claimLog
}

// acting grants the rights of the manifests, and starts an engine.
func (k *kwoked) acting() *acting {
	k.Helper()
	for _, folder := range []string{"autoscaler", "autoscaler/act", "autoscaler/act-nodes", "autoscaler/karpenter",
		"autoscaler/act-karpenter"} {
		apply(k.T, k.ctx, k.cluster, folder)
	}
	k.must(k.cluster.Client.AppsV1().Deployments("kube-system").Delete(k.ctx, "loadline-autoscaler",
		metav1.DeleteOptions{}))
	kubeconfig, err := k.cluster.ServiceAccountKubeconfig(k.ctx, "kube-system", "loadline-autoscaler")
	k.must(err)
	content, err := harness.ManifestConfig("autoscaler/20-config.yaml")
	k.must(err)
	return &acting{kwoked: k, load: &scaled{t: k.T, ctx: k.ctx, cluster: k.cluster}, kubeconfig: kubeconfig,
		config: k.write("autoscaler.yaml", content), engine: startEngine(k.T, k.ctx, k.cluster), claims: k.watchClaims()}
}

// startActing starts all of it but the autoscaler. No node exists yet.
func startActing(t *testing.T) *acting {
	t.Helper()
	k := startKarpenter(t)
	startPlainScheduler(t, k.ctx, k.cluster)
	return k.acting()
}

// start starts an autoscaler with the rights of the manifests alone.
func (a *acting) start(name string, args ...string) *harness.Autoscaler {
	a.Helper()
	autoscaler, err := a.cluster.StartAutoscaler(a.ctx, name, a.kubeconfig, a.config, append([]string{"--mode=act",
		"--engine=" + a.engine.Address, "--view=" + name, "--cloud=karpenter", "--prices=" + a.prices,
		"--scan-interval=1s", "--scale-down-delay-after-add=1s", "--node-delete-delay-after-taint=1s",
		"--eviction-retry-interval=1s", "--poll-interval=500ms", "--leader-elect-lease-duration=3s",
		"--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"}, args...)...)
	a.must(err)
	a.load.autoscaler = autoscaler
	return autoscaler
}

// deploy has so many pods of a Deployment for nodes of the NodePool.
func (a *acting) deploy(name string, replicas int32, cpu string) {
	a.Helper()
	a.load.deployOn(name, replicas, cpu, map[string]string{"team": "a"})
}

// waitLoops waits for further loops of the autoscaler that was started last.
func (a *acting) waitLoops(count int) {
	a.Helper()
	begin := a.load.loops()
	a.wait("further loops", func() bool { return a.load.loops() >= begin+count })
}

// podsOn returns the names of the pods on a node.
func (a *acting) podsOn(node string) (names []string) {
	a.Helper()
	list, err := a.cluster.Client.CoreV1().Pods("default").List(a.ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	a.must(err)
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// patchNode changes a node by a merge patch.
func (a *acting) patchNode(name, change string) {
	a.Helper()
	_, err := a.cluster.Client.CoreV1().Nodes().Patch(a.ctx, name, types.MergePatchType, []byte(change),
		metav1.PatchOptions{})
	a.must(err)
}

// requests returns the autoscalers' requests that the API server has accepted, in order.
func (a *acting) requests(verb, resource string) []harness.Change {
	a.Helper()
	return accepted(a.T, a.cluster, verb, resource)
}

// claimLog is what has become of all NodeClaims since it was begun.
type claimLog struct {
	mu       sync.Mutex
	kinds    map[string]string // instance types by name of the claim, which is never used twice; guarded by mu
	deleting map[string]bool   // claims whose deletion has begun; guarded by mu
	withPods []string          // claims with pods on their nodes when their deletion began; guarded by mu
	err      error             // why the log is not complete; guarded by mu
}

// watchClaims begins a log. It ends with the test.
func (k *kwoked) watchClaims() *claimLog {
	k.Helper()
	log := &claimLog{kinds: map[string]string{}, deleting: map[string]bool{}}
	events, err := k.objects.Resource(nodeClaims).Watch(k.ctx, metav1.ListOptions{})
	k.must(err)
	go func() {
		for event := range events.ResultChan() {
			claim, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Error {
				log.fail(fmt.Errorf("watch of NodeClaims: %v", event.Object))
				return
			}
			log.note(k.ctx, k.cluster, claim)
		}
		if k.ctx.Err() == nil {
			log.fail(fmt.Errorf("the watch of NodeClaims has ended"))
		}
	}()
	return log
}

func (l *claimLog) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// note takes over the news of a claim.
func (l *claimLog) note(ctx context.Context, cluster *harness.Cluster, claim *unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := claim.GetName()
	requirements, _, _ := unstructured.NestedSlice(claim.Object, "spec", "requirements")
	for _, one := range requirements {
		if r, ok := one.(map[string]any); ok && r["key"] == v1.LabelInstanceTypeStable {
			l.kinds[name] = fmt.Sprint(r["values"])
		}
	}
	node, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName")
	if claim.GetDeletionTimestamp() == nil || l.deleting[name] {
		return
	}
	l.deleting[name] = true
	if node == "" {
		return
	}
	pods, err := cluster.Client.CoreV1().Pods("default").List(ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		l.err = err
		return
	}
	for i := range pods.Items {
		l.withPods = append(l.withPods, name+" with pod "+pods.Items[i].Name)
	}
}

// going returns the claims whose deletion has begun.
func (l *claimLog) going() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.deleting)
}

// made returns how many claims of each instance type there have been, "2 large, 3 small".
func (l *claimLog) made() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[string]int{}
	for _, kind := range l.kinds {
		counts[strings.Trim(kind, "[]")]++
	}
	var all []string
	for kind, count := range counts {
		all = append(all, fmt.Sprintf("%d %s", count, kind))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// check holds the log against the claims that are to have been made, in all. None may have been deleted with pods.
func (a *acting) check(made string) {
	a.Helper()
	if got := a.claims.made(); got != made {
		a.Errorf("NodeClaims were made: %s, want %s", got, made)
	}
	a.claims.mu.Lock()
	defer a.claims.mu.Unlock()
	if a.claims.err != nil || len(a.claims.withPods) > 0 {
		a.Errorf("NodeClaims were deleted: %v; error %v", a.claims.withPods, a.claims.err)
	}
}
