package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	helpers "k8s.io/component-helpers/resource"

	"loadline.dev/shim/api/loadlinev1"
)

// Curve is what the load of the Deployments of a dump follows: what is missing at the quietest hour and at weekends,
// and the hour of the peak. A dump shows one moment, and does not tell.
type Curve struct {
	// DailyPercent is the share of the replicas that is missing at the quietest hour. Default: 0.
	DailyPercent int64 `json:"dailyPercent,omitempty"`
	// WeekendPercent is the share of the replicas that is missing on Saturday and Sunday. Default: 0.
	WeekendPercent int64 `json:"weekendPercent,omitempty"`
	// PeakHour is the hour of the peak, 0 to 23. Default: 14.
	PeakHour *int64 `json:"peakHour,omitempty"`
}

// Cluster is what a scenario is derived from.
type Cluster struct {
	Pods []*v1.Pod
	// Protected are those of them that an annotation forbids to evict, as the engine reads it.
	Protected map[*v1.Pod]bool
	Budgets   []*policyv1.PodDisruptionBudget
	// Groups are the node groups as the engine derives them.
	Groups []*loadlinev1.DerivedGroup
	// USDPerHour is what one node costs, by the name of its group.
	USDPerHour map[string]float64
	// GroupOf is the group of each node, by names. A node whose group is empty takes no part, nor do its pods.
	GroupOf map[string]string
	// GPUResources are the resources that are GPUs.
	GPUResources []string
	Load         Curve
}

// The growth of a group whose bounds nobody has stated.
const (
	growth      = 3
	leastGrowth = 10
	mostNodes   = 5_000
)

const mib = 1 << 20

// Derive returns a scenario like a cluster: its groups as its nodes tell, its pods by who owns them. Notes say what is
// not as in the cluster.
func Derive(c *Cluster) (*loadlinev1.Scenario, []string, error) {
	d := deriver{cluster: c, names: map[string]bool{}, groups: map[string]*loadlinev1.SimulatedGroup{},
		loads: map[string]*load{}}
	for _, group := range c.Groups {
		d.addGroup(group)
	}
	if len(d.groups) == 0 {
		return nil, nil, fmt.Errorf("there is no node that is a machine")
	}
	for _, pod := range c.Pods {
		d.addPod(pod)
	}
	out := &loadlinev1.Scenario{Settings: &loadlinev1.SimulatedSettings{}}
	for _, key := range slices.Sorted(maps.Keys(d.groups)) {
		group := d.groups[key]
		group.Max = max(leastGrowth, growth*group.GetNodes())
		out.Groups = append(out.Groups, group)
	}
	d.bound(out)
	for _, key := range slices.Sorted(maps.Keys(d.loads)) {
		out.Workloads = append(out.Workloads, d.loads[key].workload(d.name(d.loads[key].name), c))
	}
	return out, d.notes(), nil
}

type deriver struct {
	cluster  *Cluster
	names    map[string]bool // that are taken
	groups   map[string]*loadlinev1.SimulatedGroup
	loads    map[string]*load
	unpriced []string
}

// name returns a name that a scenario may have, and that no other has.
func (d *deriver) name(text string) string {
	base := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text)), "-")
	base = strings.Trim(base[:min(len(base), 55)], "-")
	name := base
	for i := 2; d.names[name]; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	d.names[name] = true
	return name
}

func (d *deriver) addGroup(of *loadlinev1.DerivedGroup) {
	key := of.GetNodeGroup()
	price, priced := d.cluster.USDPerHour[key]
	if !priced {
		d.unpriced = append(d.unpriced, key)
	}
	d.groups[key] = &loadlinev1.SimulatedGroup{Name: d.name(key), Nodes: int64(len(of.GetSlots())),
		MilliCpu: of.GetMilliCpu(), MemoryMib: of.GetMemoryBytes() / mib, Pods: of.GetPods(), Gpus: of.GetGpus(),
		UsdPerHour: price, Spot: of.GetSpot(), Tainted: of.GetRepels()}
}

// groupOfNode is the name of the group of a node in the scenario; empty: it is in none.
func (d *deriver) groupOfNode(node string) string {
	return d.groups[d.cluster.GroupOf[node]].GetName()
}

// gpus counts the GPUs of every maker.
func (d *deriver) gpus(amounts v1.ResourceList) (count int64) {
	for _, name := range d.cluster.GPUResources {
		amount := amounts[v1.ResourceName(name)]
		count += amount.Value()
	}
	return count
}

// bound keeps what all groups may grow to within what one simulation takes.
func (d *deriver) bound(scenario *loadlinev1.Scenario) {
	all, nodes := int64(0), int64(0)
	for _, group := range scenario.GetGroups() {
		all, nodes = all+group.GetMax(), nodes+group.GetNodes()
	}
	if all <= mostNodes || nodes >= mostNodes {
		return
	}
	for _, group := range scenario.GetGroups() {
		group.Max = group.GetNodes() + (group.GetMax()-group.GetNodes())*(mostNodes-nodes)/all
	}
}

// load is what one owner runs, of one size.
type load struct {
	name     string
	kind     loadlinev1.SimulatedWorkload_Kind
	pods     []*v1.Pod
	like     *loadlinev1.SimulatedWorkload
	inGroups map[string]bool
	selects  bool // its pods name nodes
}

func (d *deriver) addPod(pod *v1.Pod) {
	if group, known := d.cluster.GroupOf[pod.Spec.NodeName]; known && group == "" {
		return
	}
	owner, kind := ownerOf(pod)
	ended := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	if ended && kind != loadlinev1.SimulatedWorkload_BATCH {
		return
	}
	requests, limits := helpers.PodRequests(pod, helpers.PodResourcesOptions{}),
		helpers.PodLimits(pod, helpers.PodResourcesOptions{})
	like := &loadlinev1.SimulatedWorkload{Kind: kind, MilliCpu: requests.Cpu().MilliValue(),
		MemoryMib: (requests.Memory().Value() + mib - 1) / mib, Gpus: d.gpus(requests),
		LimitMilliCpu: limits.Cpu().MilliValue(), LimitMemoryMib: (limits.Memory().Value() + mib - 1) / mib,
		NotEvictable: d.cluster.Protected[pod]}
	if pod.Spec.Priority != nil {
		like.Priority = *pod.Spec.Priority
	}
	group := d.groupOfNode(pod.Spec.NodeName)
	if kind == loadlinev1.SimulatedWorkload_DAEMON {
		group = ""
	}
	key := fmt.Sprintf("%s/%s/%d/%d/%d/%d/%d/%d/%v/%v", pod.Namespace, owner, kind, like.GetMilliCpu(),
		like.GetMemoryMib(), like.GetLimitMilliCpu(), like.GetLimitMemoryMib(), like.GetPriority(),
		like.GetNotEvictable(), d.tainted(group))
	of := d.loads[key]
	if of == nil {
		of = &load{name: pod.Namespace + "-" + owner, kind: kind, like: like, inGroups: map[string]bool{}}
		d.loads[key] = of
	}
	of.pods = append(of.pods, pod)
	if group != "" {
		of.inGroups[group] = true
	}
	of.selects = of.selects || d.tainted(group) || len(pod.Spec.NodeSelector) > 0
}

func (d *deriver) tainted(group string) bool {
	for _, g := range d.groups {
		if g.GetName() == group {
			return g.GetTainted()
		}
	}
	return false
}

// ownerOf names what makes a pod, and how it does.
func ownerOf(pod *v1.Pod) (string, loadlinev1.SimulatedWorkload_Kind) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return cmp.Or(pod.Labels["app.kubernetes.io/name"], pod.Labels["app"], pod.Name),
			loadlinev1.SimulatedWorkload_DEPLOYMENT
	}
	switch owner.Kind {
	case "DaemonSet", "Node":
		if owner.Kind == "Node" { // of a static pod; its name ends in that of the node
			return strings.TrimSuffix(pod.Name, "-"+owner.Name), loadlinev1.SimulatedWorkload_DAEMON
		}
		return owner.Name, loadlinev1.SimulatedWorkload_DAEMON
	case "Job":
		return withoutNumber(owner.Name), loadlinev1.SimulatedWorkload_BATCH
	case "ReplicaSet":
		if hash := pod.Labels["pod-template-hash"]; hash != "" {
			return strings.TrimSuffix(owner.Name, "-"+hash), loadlinev1.SimulatedWorkload_DEPLOYMENT
		}
	}
	return owner.Name, loadlinev1.SimulatedWorkload_DEPLOYMENT
}

// withoutNumber leaves away what a CronJob puts behind the names of its Jobs.
func withoutNumber(name string) string {
	cut := strings.LastIndexByte(name, '-')
	if cut > 0 && len(name)-cut > 6 && strings.Trim(name[cut+1:], "0123456789") == "" {
		return name[:cut]
	}
	return name
}

func (l *load) workload(name string, c *Cluster) *loadlinev1.SimulatedWorkload {
	w := l.like
	w.Name = name
	w.Replicas = int64(len(l.pods))
	if l.selects && len(l.inGroups) == 1 {
		for group := range l.inGroups {
			w.Group = group
		}
	}
	switch l.kind {
	case loadlinev1.SimulatedWorkload_DAEMON:
		w.Replicas, w.NotEvictable = 0, false
	case loadlinev1.SimulatedWorkload_BATCH:
		l.waves(w)
	default:
		w.DailyPercent, w.WeekendPercent, w.PeakHour = c.Load.DailyPercent, c.Load.WeekendPercent, c.Load.PeakHour
		w.MaxUnavailable = budgetOf(l.pods[0], w.GetReplicas(), c.Budgets)
	}
	return w
}

const secondsOfDay = 86_400

// waves has the pods of Jobs come each day at the time at which the first of them was created, as many as were created
// on the last day that the dump shows.
func (l *load) waves(w *loadlinev1.SimulatedWorkload) {
	var last time.Time
	for _, pod := range l.pods {
		if pod.CreationTimestamp.After(last) {
			last = pod.CreationTimestamp.Time
		}
	}
	first, count := last, int64(0)
	shortest, longest := int64(0), int64(0)
	for _, pod := range l.pods {
		created := pod.CreationTimestamp.Time
		if last.Sub(created) >= 24*time.Hour {
			continue
		}
		count++
		if created.Before(first) {
			first = created
		}
		if took := ran(pod); took > 0 {
			longest = max(longest, took)
			if shortest == 0 || took < shortest {
				shortest = took
			}
		}
	}
	w.Replicas, w.EverySeconds = count, secondsOfDay
	if !first.IsZero() {
		w.FirstSeconds = ((first.Unix() % secondsOfDay) + secondsOfDay) % secondsOfDay
	}
	if shortest > 0 {
		w.RunSeconds = &loadlinev1.SecondsRange{Min: shortest, Max: longest}
	}
}

// ran is how many seconds the containers of a pod that has ended took; 0: not known.
func ran(pod *v1.Pod) int64 {
	took := int64(0)
	for _, status := range pod.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil && !ended.FinishedAt.IsZero() && !ended.StartedAt.IsZero() {
			took = max(took, int64(ended.FinishedAt.Sub(ended.StartedAt.Time).Seconds()))
		}
	}
	return min(took, 30*secondsOfDay)
}

// budgetOf is how many of the pods like this one their budget lets be disrupted at once; nil: they have none.
func budgetOf(pod *v1.Pod, replicas int64, budgets []*policyv1.PodDisruptionBudget) *int64 {
	for _, budget := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || budget.Namespace != pod.Namespace || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		switch {
		case budget.Spec.MaxUnavailable != nil:
			return new(share(*budget.Spec.MaxUnavailable, replicas))
		case budget.Spec.MinAvailable != nil:
			return new(max(0, replicas-share(*budget.Spec.MinAvailable, replicas)))
		}
	}
	return nil
}
