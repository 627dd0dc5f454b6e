package fit

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

func groupVersion(text string) schema.GroupVersion {
	gv, err := schema.ParseGroupVersion(text)
	if err != nil {
		panic(err) // only called with constants
	}
	return gv
}

// Upstream is kube-scheduler's default profile without the scheduler around it: its informers are never started,
// their stores are filled by hand. Not safe for concurrent use.
type Upstream struct {
	framework framework.Framework
	informers informers.SharedInformerFactory
	snapshot  *switchingLister
	devices   *deviceClasses
}

// switchingLister lets one framework work on one snapshot after another: to build a framework takes longer than
// to ask it a question.
type switchingLister struct{ fwk.SharedLister }

// NewUpstream builds the default profile; configure may change the arguments of its plugins.
func NewUpstream(ctx context.Context, configure func(*config.KubeSchedulerProfile)) (*Upstream, error) {
	metrics.Register()
	// On in 1.37. In 1.36 a cluster whose drivers state a wish has switched it on.
	if err := utilfeature.DefaultMutableFeatureGate.Set("VolumeLimitScaling=true"); err != nil {
		return nil, err
	}
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	profile := defaults.Profiles[0].DeepCopy()
	if configure != nil {
		configure(profile)
	}
	client := fake.NewSimpleClientset()
	u := &Upstream{
		informers: informers.NewSharedInformerFactory(client, 0),
		snapshot:  &switchingLister{schedulercache.NewEmptySnapshot()},
	}
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), u.informers.Resource().V1().ResourceClaims().Informer(),
		"claim", "", nil)
	u.devices = &deviceClasses{SharedDRAManager: dynamicresources.NewDRAManager(ctx, claims, nil, u.informers)}
	u.framework, err = frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(u.informers),
		frameworkruntime.WithSnapshotSharedLister(u.snapshot),
		frameworkruntime.WithSharedCSIManager(
			nodevolumelimits.NewCSIManager(u.informers.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithSharedDRAManager(u.devices),
		frameworkruntime.WithParallelism(1),
	)
	return u, err
}

// Load makes a cluster the one that the next questions are about.
func (u *Upstream) Load(c *Cluster) error {
	u.snapshot.SharedLister = schedulercache.NewSnapshot(scheduled(c), c.Nodes)
	core, storage := u.informers.Core().V1(), u.informers.Storage().V1()
	return errors.Join(
		fill(core.Namespaces().Informer(), c.Namespaces),
		fill(core.PersistentVolumes().Informer(), c.Volumes),
		fill(core.PersistentVolumeClaims().Informer(), c.Claims),
		fill(storage.StorageClasses().Informer(), c.Classes),
		fill(storage.CSINodes().Informer(), c.CSINodes),
		fill(storage.CSIDrivers().Informer(), c.CSIDrivers),
		u.loadDevices(c.Devices),
	)
}

// deviceClasses is a manager of devices that gets its classes, instead of following an informer.
type deviceClasses struct {
	fwk.SharedDRAManager
	resolver *extendedresourcecache.ExtendedResourceCache
}

func (d *deviceClasses) DeviceClassResolver() fwk.DeviceClassResolver { return d.resolver }

// ResourceSlices lists none: nodes have no devices.
func (d *deviceClasses) ResourceSlices() fwk.ResourceSliceLister { return noSlices{} }

type noSlices struct{ fwk.ResourceSliceLister }

func (noSlices) ListWithDeviceTaintRules() ([]*resourcev1.ResourceSlice, error) { return nil, nil }

func (u *Upstream) loadDevices(classes []*resourcev1.DeviceClass) error {
	u.devices.resolver = extendedresourcecache.NewExtendedResourceCache(klog.Background())
	for _, class := range classes {
		u.devices.resolver.OnAdd(class, true)
	}
	return fill(u.informers.Resource().V1().DeviceClasses().Informer(), classes)
}

// scheduled returns the pods that kube-scheduler's cache would hold: its informer leaves out finished pods, and
// its snapshot those of unknown nodes.
func scheduled(c *Cluster) []*v1.Pod {
	known := sets.New[string]()
	for _, node := range c.Nodes {
		known.Insert(node.Name)
	}
	var pods []*v1.Pod
	for _, pod := range c.Pods {
		if !finished(pod) && known.Has(pod.Spec.NodeName) {
			pods = append(pods, Admitted(pod))
		}
	}
	return pods
}

func finished(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

func fill[T runtime.Object](informer cache.SharedIndexInformer, objects []T) error {
	list := make([]any, len(objects))
	for i := range objects {
		list[i] = objects[i]
	}
	return informer.GetIndexer().Replace(list, "")
}

// Minor is that of the release 1.x whose plugins these are.
func Minor() int32 {
	if _, ok := reflect.TypeFor[v1.VolumeMount]().FieldByName("BindMountOptions"); ok {
		return 37
	}
	return 36
}

// Status classes of an answer.
const (
	Fits           = "Fits"
	Unschedulable  = "Unschedulable"
	Unresolvable   = "UnschedulableAndUnresolvable"
	CannotBeJudged = "CannotBeJudged" // upstream: the pod returns to the queue with an error
)

// Answer is the outcome of one pod on one node.
type Answer struct {
	Node    string
	Status  string
	Filter  string   // that said no
	Reasons []string // sorted, each once; of an answer that CannotBeJudged: not for comparison
	// BeforeNodes: the pod was refused before any node was looked at.
	BeforeNodes bool
}

// Answers is the outcome of one pod on every node, in the order of the cluster's nodes.
type Answers struct {
	Nodes []Answer
	// Idle are the filters that upstream did not run because they had nothing to decide for this pod.
	Idle sets.Set[string]
}

// Filter asks the PreFilter and Filter plugins about the cluster's pod on each node that pods may go to.
func (u *Upstream) Filter(ctx context.Context, c *Cluster) (*Answers, error) {
	if err := u.Load(c); err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	pod := Admitted(c.Pod)
	result, status, narrowing := u.framework.RunPreFilterPlugins(ctx, state, pod)
	answers := &Answers{Idle: state.GetSkipFilterPlugins()}
	for _, node := range c.Nodes {
		if !c.hosts(node.Name) {
			continue
		}
		answer := Answer{Node: node.Name}
		switch {
		case !status.IsSuccess():
			answer.read(status, narrowing)
			answer.BeforeNodes = answer.Status != CannotBeJudged
		case !result.AllNodes() && !result.NodeNames.Has(node.Name):
			// Scheduler.findNodesThatFitPod says this of the nodes that it does not look at.
			answer.read(fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
				fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(narrowing))), narrowing)
		default:
			info, err := u.snapshot.NodeInfos().Get(node.Name)
			if err != nil {
				return nil, err
			}
			answer.read(u.framework.RunFilterPlugins(ctx, state, pod, info), nil)
		}
		answers.Nodes = append(answers.Nodes, answer)
	}
	return answers, nil
}

// read takes over a status. A status of the framework itself names no plugin: then it is the one that narrowed
// the set of nodes.
func (a *Answer) read(status *fwk.Status, narrowing sets.Set[string]) {
	if status.IsSuccess() {
		a.Status = Fits
		return
	}
	a.Filter = status.Plugin()
	if a.Filter == "" && len(narrowing) == 1 {
		a.Filter = sets.List(narrowing)[0]
	}
	switch status.Code() {
	case fwk.Unschedulable:
		a.Status = Unschedulable
	case fwk.UnschedulableAndUnresolvable:
		a.Status = Unresolvable
	default:
		a.Status = CannotBeJudged
	}
	a.Reasons = slices.Compact(slices.Sorted(slices.Values(status.Reasons())))
}
