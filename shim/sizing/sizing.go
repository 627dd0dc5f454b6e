// Package sizing puts the question how full node groups are, and whether they grow or shrink: of a cluster's objects it
// gathers the pods that wait, and of a file of node groups their options.
package sizing

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/slack"
	"loadline.dev/shim/view"
)

// Gatherer gathers what the question needs beside the view. It gets each pod once.
type Gatherer struct {
	waiting []*loadlinev1.WaitingPods
	names   []string // namespace/name of the first pod of each entry
	index   map[waitingKey]int
	leftOut []leftout.Object
	daemons *scaleup.Pods
}

type waitingKey struct {
	pod      string
	waitsFor loadlinev1.WaitingPods_For
}

// New returns a gatherer that knows no pod.
func New() *Gatherer {
	return &Gatherer{index: map[waitingKey]int{}, daemons: scaleup.NewPods()}
}

// AddPod takes note of a pod that waits for a node, for a gate, or to start on its node, and of what DaemonSets run.
// The engine decides which of them are demand.
func (g *Gatherer) AddPod(pod *v1.Pod) {
	if _, claims := scaleup.DaemonSetOf(pod); claims {
		g.daemons.AddPod(pod)
	}
	waitsFor := loadlinev1.WaitingPods_NODE
	switch {
	case pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed:
		return
	case pod.Spec.NodeName != "" && pod.Status.Phase == v1.PodPending:
		waitsFor = loadlinev1.WaitingPods_START
	case pod.Spec.NodeName != "":
		return
	case len(pod.Spec.SchedulingGates) > 0:
		waitsFor = loadlinev1.WaitingPods_GATE
	}
	trimmed := view.TrimPodForPlanning(sized(pod))
	if reason := view.TooLarge(len(trimmed)); reason != "" {
		g.leftOut = append(g.leftOut, leftout.New("Pod", pod.Namespace, pod.Name, reason))
		return
	}
	key := waitingKey{string(trimmed), waitsFor}
	if at, known := g.index[key]; known {
		g.waiting[at].Count++
		return
	}
	g.index[key] = len(g.waiting)
	g.waiting = append(g.waiting, &loadlinev1.WaitingPods{Pod: trimmed, Count: 1, WaitsFor: waitsFor})
	g.names = append(g.names, pod.Namespace+"/"+pod.Name)
}

// LeftOut returns the pods that are too large for the question.
func (g *Gatherer) LeftOut() []leftout.Object { return g.leftOut }

// AddObject takes note of DaemonSets, and of nothing else.
func (g *Gatherer) AddObject(object any) { g.daemons.AddObject(object) }

// Pods returns the pods that were added, equal ones together.
func (g *Gatherer) Pods() []*loadlinev1.WaitingPods { return g.waiting }

// Only returns the entries at some positions, in this order.
func (g *Gatherer) Only(positions []int) *Gatherer {
	out := New()
	out.leftOut = g.leftOut
	for _, i := range positions {
		out.waiting, out.names = append(out.waiting, g.waiting[i]), append(out.names, g.names[i])
	}
	return out
}

// Name returns the namespace and name of a pod at a position of Pods; empty behind its end, and of no gatherer.
func (g *Gatherer) Name(i int32) string {
	if g == nil || i < 0 || int(i) >= len(g.names) {
		return ""
	}
	return g.names[i]
}

// The fields of a question that hold Pods: the engine names a pod that it leaves out by its place there, such as
// "pods[0]", since it gets no names.
const (
	FieldOfRequest = "pods"      // MeasureUtilizationRequest.pods
	FieldOfLoop    = "size_pods" // PlanLoopRequest.size_pods
)

// NameLeftOut fills in the names of pods that an answer leaves out by their place in a field. Of equal pods it takes
// the name of the first.
func (g *Gatherer) NameLeftOut(field string, objects []*loadlinev1.LeftOut) {
	for _, o := range objects {
		place, ok := strings.CutPrefix(o.GetName(), field+"[")
		if !ok || o.GetKind() != "Pod" {
			continue
		}
		i, err := strconv.ParseInt(strings.TrimSuffix(place, "]"), 10, 32)
		if err != nil {
			continue
		}
		if namespace, name, known := strings.Cut(g.Name(int32(i)), "/"); known {
			o.Namespace, o.Name = namespace, name
			if others := g.waiting[i].GetCount() - 1; others > 0 {
				o.Reason = fmt.Sprintf("%s (pods like it: %d)", o.GetReason(), others)
			}
		}
	}
}

// namesOfOnePod are labels that no other pod has with the same value.
var namesOfOnePod = []string{"batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index",
	"statefulset.kubernetes.io/pod-name"}

// sized returns only what decides a pod's size, its group and the nodes that it fits on, so that pods that differ in
// name and owner are equal.
func sized(pod *v1.Pod) *v1.Pod {
	out := &v1.Pod{}
	out.Namespace = pod.Namespace
	// Other labels bear on nodes by way of the pod's own terms, which may select the pod itself.
	terms := len(pod.Spec.TopologySpreadConstraints) > 0 ||
		pod.Spec.Affinity != nil && (pod.Spec.Affinity.PodAffinity != nil || pod.Spec.Affinity.PodAntiAffinity != nil)
	for key, value := range pod.Labels {
		if key == slack.PlaceholderLabel || terms && !slices.Contains(namesOfOnePod, key) {
			metav1.SetMetaDataLabel(&out.ObjectMeta, key, value)
		}
	}
	placeholder := pod.Labels[slack.PlaceholderLabel] != ""
	if owner := metav1.GetControllerOf(pod); owner != nil && (owner.Kind == "DaemonSet" || placeholder) {
		out.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: owner.APIVersion, Kind: owner.Kind, Controller: owner.Controller}}
	}
	if placeholder { // the label alone makes none: the engine looks at owner and priority too
		out.Spec.Priority = pod.Spec.Priority
	}
	for _, key := range []string{v1.MirrorPodAnnotationKey, "kubernetes.io/config.source",
		"cluster-autoscaler.kubernetes.io/daemonset-pod"} {
		if value, ok := pod.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&out.ObjectMeta, key, value)
		}
	}
	out.Spec.NodeSelector, out.Spec.Affinity = pod.Spec.NodeSelector, pod.Spec.Affinity
	out.Spec.Tolerations, out.Spec.TopologySpreadConstraints = pod.Spec.Tolerations, pod.Spec.TopologySpreadConstraints
	out.Spec.Overhead, out.Spec.Resources = pod.Spec.Overhead, pod.Spec.Resources
	out.Spec.Volumes, out.Spec.ResourceClaims = pod.Spec.Volumes, pod.Spec.ResourceClaims
	out.Spec.Containers, out.Spec.InitContainers = containers(pod.Spec.Containers), containers(pod.Spec.InitContainers)
	return out
}

func containers(from []v1.Container) []v1.Container {
	var out []v1.Container
	for i := range from {
		out = append(out,
			v1.Container{Ports: from[i].Ports, Resources: from[i].Resources, RestartPolicy: from[i].RestartPolicy})
	}
	return out
}

// Request returns the question about the groups that say how they are sized, but for the view.
func (g *Gatherer) Request(groups []nodegroup.NodeGroup, now time.Time,
	state *loadlinev1.SizeState) (*loadlinev1.MeasureUtilizationRequest, error) {
	out := &loadlinev1.MeasureUtilizationRequest{NowMilliseconds: now.UnixMilli(), Pods: g.waiting, State: state,
		DaemonPods: g.daemons.DaemonPods()}
	for i := range groups {
		if groups[i].Spec.Size == nil {
			continue
		}
		group, err := sizedGroup(&groups[i])
		if err != nil {
			return nil, fmt.Errorf("node group %q: %w", groups[i].Name(), err)
		}
		out.Groups = append(out.Groups, group)
	}
	if len(out.Groups) == 0 {
		return nil, errors.New("no node group says how it is sized: spec.size is missing")
	}
	return out, nil
}

func sizedGroup(group *nodegroup.NodeGroup) (*loadlinev1.SizedGroup, error) {
	spec := &group.Spec
	out := &loadlinev1.SizedGroup{NodeGroup: group.Name(), CatchAll: spec.Size.CatchAll, CloudTarget: spec.Target,
		Options: options(spec)}
	labels := spec.NodeSelector
	if len(labels) == 0 {
		labels = ownLabels(spec.Template.Labels)
	}
	for key, value := range labels {
		out.Labels = append(out.Labels, &loadlinev1.GroupLabel{Key: key, Value: value})
	}
	slices.SortFunc(out.Labels,
		func(a, b *loadlinev1.GroupLabel) int { return strings.Compare(a.GetKey(), b.GetKey()) })
	if len(out.Labels) == 0 {
		return nil, errors.New("spec.nodeSelector: missing, and the template has no label that tells the group " +
			"from others")
	}
	if spec.Template == nil {
		return out, nil
	}
	template := *spec.Template
	if template.Name == "" {
		template.Name = "template"
	}
	out.TemplateNode = view.TrimNode(&template)
	return out, nil
}

// Cloud is what a cloud provider says of a group.
type Cloud struct {
	ID       string
	Min, Max int32
}

// ForLoop returns how a group is sized within a loop of the autoscaler, where its template and what the cloud holds are
// known already. A group without bounds of its own, 0 and 0, has those of the cloud.
func ForLoop(group *nodegroup.NodeGroup, cloud Cloud) (*loadlinev1.SizedGroup, error) {
	out, err := sizedGroup(group)
	if err != nil {
		return nil, err
	}
	out.NodeGroup, out.TemplateNode, out.CloudTarget, out.DryRun = cloud.ID, nil, nil, group.Spec.Size.DryMode
	out.Options.CloudMin, out.Options.CloudMax = nil, nil
	if spec := &group.Spec; spec.Min == 0 && (spec.Max == 0 || spec.Max == math.MaxInt32) {
		out.Options.MinNodes, out.Options.MaxNodes = cloud.Min, cloud.Max
	}
	return out, nil
}

// ownLabels are the labels of a template but for those that nodes of any group carry: who asks for Linux asks for no
// group.
func ownLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		switch key {
		case v1.LabelHostname, v1.LabelOSStable, v1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch":
			continue
		}
		out[key] = value
	}
	return out
}

func options(spec *nodegroup.Spec) *loadlinev1.SizeOptions {
	size := spec.Size
	mode := loadlinev1.SizeOptions_DEFAULT
	if size.Mode == nodegroup.ModeCompat {
		mode = loadlinev1.SizeOptions_COMPAT
	}
	return &loadlinev1.SizeOptions{
		Mode:     mode,
		MinNodes: spec.Min, MaxNodes: spec.Max, CloudMin: size.CloudMin, CloudMax: size.CloudMax,
		ScaleUpPercent: size.ScaleUpThresholdPercent, TaintUpperPercent: size.TaintUpperCapacityThresholdPercent,
		TaintLowerPercent: size.TaintLowerCapacityThresholdPercent,
		SlowRate:          size.SlowNodeRemovalRate, FastRate: size.FastNodeRemovalRate,
		SoftGraceMilliseconds: size.SoftDeleteGracePeriod.Milliseconds(),
		HardGraceMilliseconds: size.HardDeleteGracePeriod.Milliseconds(),
		CoolDownMilliseconds:  size.ScaleUpCoolDownPeriod.Milliseconds(),
		ScaleOnStarve:         size.ScaleOnStarve, MaxNodeAgeMilliseconds: size.MaxNodeAge.Milliseconds(),
		UnhealthyGraceMilliseconds: size.UnhealthyNodeGracePeriod.Milliseconds(),
		NewestPercent:              size.HealthCheckNewestNodesPercent,
		MaxUnhealthyPercent:        size.MaxUnhealthyNodesPercent,
		IgnoreDaemonSets:           size.DaemonSets == nodegroup.DaemonSetsIgnore,
	}
}

// actions are what happens to a group, in words.
var actions = map[loadlinev1.GroupSize_Action]string{
	loadlinev1.GroupSize_NOTHING: "nothing", loadlinev1.GroupSize_SCALE_UP: "scale-up",
	loadlinev1.GroupSize_REMOVE_SLOWLY: "remove-slowly", loadlinev1.GroupSize_REMOVE_FAST: "remove-fast",
}

// Action names what happens to a group.
func Action(group *loadlinev1.GroupSize) string { return actions[group.GetAction()] }

// counted says it of one or of several.
func counted(w *loadlinev1.SizeWarning, one, many string) string {
	if w.GetCount() == 1 {
		return fmt.Sprintf(one, 1)
	}
	return fmt.Sprintf(many, w.GetCount())
}

// Warnings are the warnings about a group, each in a sentence. pods is what was asked with; nil: it is not known.
func Warnings(group *loadlinev1.GroupSize, pods *Gatherer) []string {
	var out []string
	for _, w := range group.GetWarnings() {
		switch w.GetKind() {
		case loadlinev1.SizeWarning_NO_NODES:
			out = append(out, "no node carries its labels")
		case loadlinev1.SizeWarning_MIXED_NODES:
			out = append(out, "its nodes do not all offer the same")
		case loadlinev1.SizeWarning_DAEMON_SHARE:
			out = append(out, "DaemonSet pods take more of its nodes than the scale-up threshold leaves")
		case loadlinev1.SizeWarning_PODS_WITHOUT_REQUESTS:
			out = append(out, counted(w, "%d of its pods has a container that requests no cpu or no memory",
				"%d of its pods have a container that requests no cpu or no memory"))
		case loadlinev1.SizeWarning_SHARED_NODES:
			out = append(out, counted(w, "%d of its nodes is also of ", "%d of its nodes are also of ")+w.GetNodeGroup())
		case loadlinev1.SizeWarning_UNCOUNTED_PODS:
			out = append(out, counted(w, "%d pod on its nodes asks for no group and is no demand",
				"%d pods on its nodes ask for no group and are no demand"))
		case loadlinev1.SizeWarning_PODS_TOO_LARGE:
			text := counted(w, "%d of its pods that wait requests more than any of its nodes offers, and is no demand",
				"%d of its pods that wait request more than any of its nodes offers, and are no demand")
			if pods != nil && w.FirstPod != nil {
				text += ", such as " + pods.Name(w.GetFirstPod())
			}
			out = append(out, text)
		case loadlinev1.SizeWarning_STARVING_UNKNOWN:
			out = append(out, "its pods that wait are too many to tell whether one of them starves")
		}
	}
	return out
}
