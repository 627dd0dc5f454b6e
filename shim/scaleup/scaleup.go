// Package scaleup puts the question which node group grows: of a cluster's objects it gathers the pods that wait for a
// node, what every new node carries, and what the node groups look like.
package scaleup

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/view"
)

// Gatherer gathers what a question needs beside the view. It is told each node and pod once.
type Gatherer struct {
	groups  []nodegroup.NodeGroup
	members []member // by group
	waiting []waiting
	byBytes map[string]int // position in waiting
	daemons map[string]*v1.Pod
	pods    int
}

// member is what is known of a group by its nodes.
type member struct {
	count int32
	// model is the node that stands for the group where it has no template: a usable one before others, then the first
	// by name.
	model *v1.Node
}

// waiting are equal pods that wait for a node.
type waiting struct {
	pod   []byte
	first string // namespace and name of the first one, for messages
	count int32
}

// New returns a gatherer for node groups.
func New(groups []nodegroup.NodeGroup) *Gatherer {
	return &Gatherer{groups: groups, members: make([]member, len(groups)), byBytes: map[string]int{}, daemons: map[string]*v1.Pod{}}
}

// AddNode takes note of a node.
func (g *Gatherer) AddNode(node *v1.Node) {
	for i := range g.groups {
		if !g.groups[i].Spec.Has(node.Labels) {
			continue
		}
		m := &g.members[i]
		m.count++
		if g.groups[i].Spec.Template == nil && (m.model == nil || modelBefore(node, m.model)) {
			m.model = node
		}
	}
}

// modelBefore says whether a node stands better for its group than another.
func modelBefore(a, b *v1.Node) bool {
	if usable(a) != usable(b) {
		return usable(a)
	}
	return a.Name < b.Name
}

// usable says whether pods go to a node.
func usable(node *v1.Node) bool {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
	return ready && !node.Spec.Unschedulable
}

// AddPod takes note of a pod. Those that wait are gathered, but for pods of DaemonSets, which wait for one node of
// their own, pods that are not to be scheduled yet, and pods that end.
func (g *Gatherer) AddPod(pod *v1.Pod) {
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed || pod.DeletionTimestamp != nil {
		return
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "DaemonSet" {
		g.addDaemon(owner, pod)
		return
	}
	if pod.Spec.NodeName != "" || len(pod.Spec.SchedulingGates) > 0 {
		return
	}
	g.pods++
	key := string(view.SignPodForFilters(pod))
	if at, known := g.byBytes[key]; known && !namesClaims(pod) {
		g.waiting[at].count++
		return
	}
	g.byBytes[key] = len(g.waiting)
	g.waiting = append(g.waiting, waiting{view.TrimIncomingPodForFilters(pod), pod.Namespace + "/" + pod.Name, 1})
}

// namesClaims says whether a pod has claims of its own name, so that no other pod is equal to it.
func namesClaims(pod *v1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 ||
		slices.ContainsFunc(pod.Spec.Volumes, func(volume v1.Volume) bool { return volume.Ephemeral != nil })
}

// addDaemon keeps of each DaemonSet the pod that is first by name: all of them look the same.
func (g *Gatherer) addDaemon(owner *metav1.OwnerReference, pod *v1.Pod) {
	key := pod.Namespace + "/" + owner.Name
	if kept, ok := g.daemons[key]; !ok || pod.Name < kept.Name {
		g.daemons[key] = pod
	}
}

// Waiting returns how many pods wait.
func (g *Gatherer) Waiting() int { return g.pods }

// Problem returns the question, but for the cluster, which is a view's.
func (g *Gatherer) Problem() (*loadlinev1.ScaleUpProblem, error) {
	out := &loadlinev1.ScaleUpProblem{}
	for _, w := range g.waiting {
		out.Pods = append(out.Pods, &loadlinev1.PendingPods{Pod: &loadlinev1.IncomingPod{Pod: w.pod}, Count: w.count})
	}
	keys := make([]string, 0, len(g.daemons))
	for key := range g.daemons {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		out.DaemonPods = append(out.DaemonPods, view.TrimIncomingPodForFilters(anywhere(g.daemons[key])))
	}
	for i := range g.groups {
		group, err := g.group(i)
		if err != nil {
			return nil, fmt.Errorf("node group %q: %w", g.groups[i].Name(), err)
		}
		out.Groups = append(out.Groups, group)
	}
	return out, nil
}

func (g *Gatherer) group(i int) (*loadlinev1.ScalableGroup, error) {
	spec := &g.groups[i].Spec
	out := &loadlinev1.ScalableGroup{NodeGroup: g.groups[i].Name(), CurrentNodes: g.members[i].count, MaxNodes: spec.Max,
		NodeUsdPerHour: spec.Price, InstanceType: spec.InstanceType}
	if spec.Target != nil {
		out.CurrentNodes = max(out.CurrentNodes, *spec.Target)
	}
	var err error
	switch {
	case spec.Template != nil:
		out.TemplateNode, err = complete(spec.Template, g.groups[i].Name()).Marshal()
	case g.members[i].model != nil:
		out.TemplateNode, err = likeNew(g.members[i].model).Marshal()
	}
	return out, err
}

// complete fills in what people leave out of a template: a name, and what a node has is what it offers, and the other way
// round.
func complete(template *v1.Node, group string) *v1.Node {
	node := template.DeepCopy()
	if node.Name == "" {
		node.Name = "template-node-for-" + group // as Cluster Autoscaler calls them
	}
	if len(node.Status.Allocatable) == 0 {
		node.Status.Allocatable = node.Status.Capacity
	}
	if len(node.Status.Capacity) == 0 {
		node.Status.Capacity = node.Status.Allocatable
	}
	return node
}

// likeNew returns a node as it was when it joined: without what came to it since.
func likeNew(node *v1.Node) *v1.Node {
	out := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, Annotations: node.Annotations}}
	out.Status.Capacity, out.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
	for _, taint := range node.Spec.Taints {
		if !strings.HasPrefix(taint.Key, "node.kubernetes.io/") && !slices.Contains(passingTaints, taint.Key) {
			out.Spec.Taints = append(out.Spec.Taints, taint)
		}
	}
	return out
}

// passingTaints are those that autoscalers put on nodes that are to go.
var passingTaints = []string{"ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler", "atlassian.com/escalator"}

// anywhere returns the pod of a DaemonSet without the node that its controller made it for.
func anywhere(pod *v1.Pod) *v1.Pod {
	out := pod.DeepCopy()
	out.Spec.NodeName = ""
	if out.Spec.Affinity == nil || out.Spec.Affinity.NodeAffinity == nil {
		return out
	}
	required := out.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return out
	}
	for i := range required.NodeSelectorTerms {
		required.NodeSelectorTerms[i].MatchFields = nil
	}
	// A term that says nothing matches no node; here it said the one node, and now says any.
	if slices.ContainsFunc(required.NodeSelectorTerms, func(t v1.NodeSelectorTerm) bool { return len(t.MatchExpressions) == 0 }) {
		out.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
	return out
}

// Options returns the options that estimates come to, to be ranked. Groups that need no node are options as well, so
// that the ranking says what became of them.
func Options(problem *loadlinev1.ScaleUpProblem, estimates []*loadlinev1.GroupEstimate) ([]*loadlinev1.ExpansionOption, error) {
	if len(estimates) != len(problem.GetGroups()) {
		return nil, fmt.Errorf("asked about %d node groups, answered about %d", len(problem.GetGroups()), len(estimates))
	}
	out := make([]*loadlinev1.ExpansionOption, len(estimates))
	for i, estimate := range estimates {
		group := problem.GetGroups()[i]
		out[i] = &loadlinev1.ExpansionOption{
			NodeGroup: group.GetNodeGroup(), NodeCount: estimate.GetNodeCount(), TemplateNode: group.GetTemplateNode(), Pods: estimate.GetPods(),
			NodeUsdPerHour: group.NodeUsdPerHour, InstanceType: group.GetInstanceType(), Spot: group.Spot,
		}
	}
	return out, nil
}

// Notes says what became of pods and groups beside the options, each in a sentence.
func Notes(problem *loadlinev1.ScaleUpProblem, answer *loadlinev1.EstimateScaleUpResponse) []string {
	all, there := int64(0), int64(0)
	for _, pods := range problem.GetPods() {
		all += int64(pods.GetCount())
	}
	for _, placement := range answer.GetExisting() {
		there += int64(placement.GetPods().GetCount())
	}
	notes := []string{fmt.Sprintf("%d pods wait; %d of them fit on nodes that are there.", all, there)}
	for _, group := range answer.GetGroups() {
		switch group.GetEnd() {
		case loadlinev1.GroupEstimate_NODE_LIMIT:
			notes = append(notes, group.GetNodeGroup()+" may not grow further.")
		case loadlinev1.GroupEstimate_CUT_SHORT:
			notes = append(notes, group.GetNodeGroup()+": the estimate was cut short.")
		case loadlinev1.GroupEstimate_NO_TEMPLATE:
			notes = append(notes, group.GetNodeGroup()+" has neither a template nor a node.")
		}
	}
	return notes
}
