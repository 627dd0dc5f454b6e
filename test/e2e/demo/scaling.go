package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/simcloud"
)

// NodeStart is how long a machine of the simulated cloud takes to become a node.
const NodeStart = 15 * time.Second

// BurstBound is within which time a burst is placed that slack was kept for.
const BurstBound = 5 * time.Second

// The load: pods of half a cpu. LoadPods come first, then BurstPods more, and RestPods of the first stay.
const (
	LoadPods  = 24
	BurstPods = 6
	RestPods  = 6
	podCPU    = "500m"
)

// BaseGroup has one node that is always there.
const BaseGroup = "base"

// ScalingGroups are the node groups of the cloud. A cpu costs less on a larger machine.
func ScalingGroups() []simcloud.Group {
	return []simcloud.Group{
		cloudGroup(BaseGroup, 1, 1, 2, 0.10), cloudGroup("small", 0, 10, 2, 0.10), cloudGroup("medium", 0, 10, 4, 0.19),
		cloudGroup("large", 0, 10, 8, 0.36), cloudGroup("dear", 0, 10, 8, 0.90),
	}
}

// LoadPods need 20 places beside the four of the base node: a large and a small one cost 0.36 + 0.10, and nothing less
// does. If a loop of the autoscaler sees a part of the pods before the others have come, two medium ones and a small
// one may come of it, for 0.48. Of one group alone five small ones are cheapest, for 0.50, which no mix is to exceed.
const (
	CheapestMixUSD   = 0.46
	CheapestGroupUSD = 0.50
)

func cloudGroup(id string, lowest, highest int, cpus int64, price float64) simcloud.Group {
	size := v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(cpus, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(cpus<<32, resource.BinarySI),
		v1.ResourcePods:   resource.MustParse("110")}
	return simcloud.Group{ID: id, Min: lowest, Max: highest, Price: price,
		Template: &v1.Node{Status: v1.NodeStatus{Capacity: size, Allocatable: size}}}
}

// Scaling is what became of the load with one autoscaler.
type Scaling struct {
	Name string
	// Mix is how many nodes each group had when the first load ran; groups without nodes are left out.
	Mix map[string]int
	// LoadTook and BurstTook are how long the pod that waited longest had no node.
	LoadTook, BurstTook time.Duration
	// Marks are when something happened to the load.
	Marks []ScalingMark
	// Samples of the cluster, in order of time.
	Samples []Sample
	// Most are the nodes that were seen to go at once. Removed went in all, USD is what all nodes have cost.
	Most, Removed int
	USD           float64
	// Evictions by the status of the answer. PutOff were refused while all budgets were closed.
	Evictions map[int]int
	PutOff    int
	// Moved are the pods that were left on nodes which then went.
	Moved int
	// Broken is what must not have happened.
	Broken []string
}

// ScalingMark is something that happened to the load.
type ScalingMark struct {
	At   time.Duration
	What string
}

// AutoscalerUser is the name under which the API server notes what the autoscaler does.
const AutoscalerUser = "system:serviceaccount:kube-system:loadline-autoscaler"

// scaling is the scenario while it runs.
type scaling struct {
	*harness.Cluster
	cloud *simcloud.Cloud
	began time.Time
	left  time.Duration // when the load had left; 0: it has not
	rest  []string      // nodes of the pods that were left then
	// closures of the budgets.
	closures []closure
	log      harness.Logf
	out      Scaling
}

// RunScalings runs the scenario without slack and with it, at the same time.
func RunScalings(ctx context.Context, log harness.Logf) (without, with Scaling, err error) {
	// Built here, so that not both of them build.
	if _, err := harness.Build(ctx, log, harness.Etcd, harness.APIServer, harness.StockScheduler,
		harness.ControllerManager); err != nil {
		return without, with, err
	}
	other := make(chan error, 1)
	go func() {
		var err error
		without, err = runScaling(ctx, WithoutSlack, "0", log)
		other <- err
	}()
	with, err = runScaling(ctx, WithSlack, SlackRate, log)
	return without, with, errors.Join(<-other, err)
}

// runScaling runs the scenario on a control plane of its own: load arrives, a burst follows, most of it leaves. `rate`
// is the slack that is kept, "0" for none.
func runScaling(ctx context.Context, name, rate string, log harness.Logf) (out Scaling, err error) {
	cluster, err := harness.Start(ctx, harness.Options{Log: log, ControllerManager: true, Kubelet: true, Audit: true})
	if err != nil {
		return Scaling{}, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	s := &scaling{Cluster: cluster,
		log: func(format string, args ...any) { log("%-13s "+format, append([]any{name + ":"}, args...)...) },
		out: Scaling{Name: name, Mix: map[string]int{}, Evictions: map[int]int{}}}
	s.cloud, err = simcloud.Start(cluster.Client, filepath.Join(cluster.Dir(), "cloud.sock"),
		simcloud.Options{CreateDelay: NodeStart, DeleteDelay: time.Second, Groups: ScalingGroups()})
	if err != nil {
		return Scaling{}, err
	}
	defer func() { err = errors.Join(err, s.cloud.Close()) }()
	if err := s.start(ctx, rate); err != nil {
		return Scaling{}, err
	}
	samples := s.sample(ctx)
	err = errors.Join(s.play(ctx), ctx.Err())
	s.out.Samples = samples()
	s.sum()
	if err == nil {
		err = s.check(ctx)
	}
	return s.out, err
}

// start starts what decides: scheduler, engine and autoscaler, with the rights and the configuration of manifests/.
func (s *scaling) start(ctx context.Context, rate string) error {
	if err := s.cloud.Grow(BaseGroup, 1); err != nil {
		return err
	}
	if err := s.until(ctx, "the first node", func() (bool, error) {
		nodes, err := s.nodes(ctx)
		return len(nodes) == 1, err
	}); err != nil {
		return err
	}
	if _, err := s.StartScheduler(ctx,
		harness.SchedulerOptions{Name: StockName, Config: []byte(stockConfig), Site: demoSite}); err != nil {
		return err
	}
	// A cluster runs something of its own. To one without any pod the autoscaler does nothing: its list may be wrong.
	resident := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "resident"},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "registry.example/dns:1"}}}}
	if err := s.CreatePods(ctx, []*v1.Pod{resident}); err != nil {
		return err
	}
	for _, folder := range []string{"autoscaler", "autoscaler/act", "autoscaler/act-nodes"} {
		objects, err := harness.ManifestObjects(folder)
		if err != nil {
			return err
		}
		// The pods of the manifests would stay pending: there are no machines that could run them.
		objects = slices.DeleteFunc(objects,
			func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
		if err := s.Apply(ctx, objects); err != nil {
			return err
		}
	}
	kubeconfig, err := s.ServiceAccountKubeconfig(ctx, "kube-system", "loadline-autoscaler")
	if err != nil {
		return err
	}
	content, err := harness.ManifestConfig("autoscaler/20-config.yaml")
	if err != nil {
		return err
	}
	file := filepath.Join(s.Dir(), "autoscaler.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return err
	}
	engine, err := s.StartEngine(ctx, "loadlined")
	if err != nil {
		return err
	}
	// Times are those of a cloud whose nodes start in a quarter of a minute.
	_, err = s.StartAutoscaler(ctx, "autoscaler", kubeconfig, file, "--mode=act",
		"--decisions=scale-up,slack,scale-down", "--engine="+engine.Address,
		"--cloud-address=unix://"+filepath.Join(s.Dir(), "cloud.sock"), "--cloud-cacert=", "--cloud-cert=",
		"--cloud-key=", "--scan-interval=1s", "--extra-capacity-min-rate="+rate, "--slack-keep=report",
		"--slack-removal-delay=2s", "--scale-down-unneeded-time=5s", "--scale-down-delay-after-add=2s",
		"--node-delete-delay-after-taint=2s",
		"--eviction-retry-interval=500ms", "--poll-interval=500ms")
	return err
}

// play lets the load come and go.
func (s *scaling) play(ctx context.Context) (err error) {
	s.mark("load arrives")
	if s.out.LoadTook, err = s.load(ctx, "web", LoadPods, "--deployments=3", "--max-unavailable=1"); err != nil {
		return err
	}
	s.log("%d pods run; the last one had waited %.2f s for its node", LoadPods, s.out.LoadTook.Seconds())
	if err := s.settle(ctx); err != nil {
		return err
	}
	for _, g := range ScalingGroups() {
		if nodes := s.cloud.Target(g.ID); nodes > 0 {
			s.out.Mix[g.ID] = nodes
		}
	}
	s.log("nodes: %s", s.out.MixText())
	s.mark("burst")
	if s.out.BurstTook, err = s.load(ctx, "burst", BurstPods, "--deployments=1", "--max-unavailable=1"); err != nil {
		return err
	}
	s.log("a burst of %d pods runs; the last one had waited %.2f s for its node", BurstPods, s.out.BurstTook.Seconds())
	if err := s.settle(ctx); err != nil {
		return err
	}
	s.mark("load leaves")
	if _, err := s.CLI(ctx, "generate-load", "--name=burst", "--remove"); err != nil {
		return err
	}
	if _, err := s.load(ctx, "web", RestPods, "--deployments=3", "--max-unavailable=1"); err != nil {
		return err
	}
	s.left = time.Since(s.began)
	s.log("%d pods are left", RestPods)
	pods, err := s.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil { // the others end of themselves
			s.rest = append(s.rest, pods.Items[i].Spec.NodeName)
		}
	}
	if err := s.settleTightly(ctx); err != nil {
		return err
	}
	s.mark("at rest")
	return nil
}

// settleTightly waits like settle, and closes the budgets for a while once nodes drain.
func (s *scaling) settleTightly(ctx context.Context) error {
	tightening, end := context.WithCancel(ctx)
	tightened := make(chan error, 1)
	go func() { tightened <- s.tighten(tightening) }()
	err := s.settle(ctx)
	end()
	return errors.Join(err, <-tightened)
}

func (s *scaling) mark(what string) {
	s.out.Marks = append(s.out.Marks, ScalingMark{time.Since(s.began), what})
}

// load has generate-load make pods, waits until all of them run, and returns how long the slowest of them had no node.
func (s *scaling) load(ctx context.Context, name string, pods int, args ...string) (time.Duration, error) {
	waits, err := watchWaits(ctx, s.Client, "loadline.dev/generated-load="+name)
	if err != nil {
		return 0, err
	}
	defer waits.stop()
	if _, err := s.CLI(ctx, append([]string{"generate-load", "--name=" + name, fmt.Sprintf("--pods=%d", pods),
		"--cpu=" + podCPU, "--memory=512Mi", "--limit-factor=2", "--wait=false"}, args...)...); err != nil {
		return 0, err
	}
	err = s.until(ctx, fmt.Sprintf("%d pods of %s", pods, name),
		func() (bool, error) { return waits.running() == pods, nil })
	return waits.longest(), err
}

// settle waits until the cloud has not been asked for anything for some loops, and no node is on its way in or out.
func (s *scaling) settle(ctx context.Context) error {
	requests, since := s.cloud.Requests(), time.Now()
	return s.until(ctx, "the cluster to come to rest", func() (bool, error) {
		nodes, err := s.nodes(ctx)
		if err != nil {
			return false, err
		}
		targets := 0
		for _, g := range ScalingGroups() {
			targets += s.cloud.Target(g.ID)
		}
		marked := slices.ContainsFunc(nodes,
			func(n v1.Node) bool { return len(n.Spec.Taints) > 0 || n.Annotations[drain.MarkAnnotation] != "" })
		if now := s.cloud.Requests(); now != requests || targets != len(nodes) || marked {
			requests, since = now, time.Now()
		}
		return time.Since(since) > 9*time.Second, nil // longer than a node is unneeded before it is removed
	})
}

// until waits until something holds, for three minutes at most.
func (s *scaling) until(ctx context.Context, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		if ok, err := holds(); err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			status := "no status"
			if object, err := s.Client.CoreV1().ConfigMaps("kube-system").Get(context.WithoutCancel(ctx),
				"loadline-autoscaler-status", metav1.GetOptions{}); err == nil {
				status = object.Data["status"]
			}
			return fmt.Errorf("waited in vain for %s: %w; the autoscaler says\n%s", what, ctx.Err(), status)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *scaling) nodes(ctx context.Context) ([]v1.Node, error) {
	list, err := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
