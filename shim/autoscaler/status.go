package autoscaler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/autoscaler/config"
)

func durationMessage(d config.Duration) *durationpb.Duration { return durationpb.New(d.Duration) }

// Status is what the ConfigMap tells, in the shape of Cluster Autoscaler's where that has a word for it.
type Status struct {
	Time             string        `json:"time"`
	AutoscalerStatus string        `json:"autoscalerStatus"`
	Mode             string        `json:"mode"`
	Message          string        `json:"message,omitempty"`
	ClusterWide      ClusterStatus `json:"clusterWide"`
	NodeGroups       []GroupStatus `json:"nodeGroups,omitempty"`
}

// ClusterStatus is that of all nodes.
type ClusterStatus struct {
	Health    HealthStatus    `json:"health"`
	ScaleDown ScaleDownStatus `json:"scaleDown"`
}

// HealthStatus counts nodes.
type HealthStatus struct {
	Status string `json:"status"`
	Nodes  int    `json:"nodes"`
	Pods   int    `json:"pods"`
}

// ScaleDownStatus tells what goes, what stays and why.
type ScaleDownStatus struct {
	// Status is CandidatesPresent or NoCandidates; Result what came of the last loop.
	Status string `json:"status"`
	Result string `json:"result"`
	// Brake is what holds everything back, Limit what holds some nodes back.
	Brake      string   `json:"brake,omitempty"`
	Limit      string   `json:"limit,omitempty"`
	Candidates int      `json:"candidates"`
	Next       []string `json:"next,omitempty"`
	Removing   []string `json:"removing,omitempty"`
	// TopBlockers are the most frequent reasons for which nodes stay; Why are examples, with what would help.
	TopBlockers []Blocker `json:"topBlockers,omitempty"`
	Why         []string  `json:"why,omitempty"`
}

// Blocker is a reason for which nodes stay.
type Blocker struct {
	Reason string `json:"reason"`
	Nodes  int    `json:"nodes"`
}

// GroupStatus is that of a node group.
type GroupStatus struct {
	Name       string `json:"name"`
	MinSize    int    `json:"minSize"`
	MaxSize    int    `json:"maxSize"`
	Target     int    `json:"cloudProviderTarget"`
	Nodes      int    `json:"nodes"`
	Candidates int    `json:"candidates"`
}

// topEntries is how many entries each list of the status has at most.
const topEntries = 5

func (l *leader) statusOf(o *loop) *Status {
	s := &Status{Time: o.now.UTC().Format(time.RFC3339), AutoscalerStatus: "Running", Mode: l.config.Mode}
	s.ClusterWide.Health = HealthStatus{Status: "Healthy", Nodes: len(l.cluster.nodes), Pods: len(l.cluster.pods)}
	down := &s.ClusterWide.ScaleDown
	down.Status, down.Result = "NoCandidates", o.outcome
	for _, name := range slices.Sorted(maps.Keys(o.underWay)) {
		d := o.underWay[name]
		down.Removing = append(down.Removing, fmt.Sprintf("%s: %s", name, d.Stage))
	}
	if o.problem != nil {
		s.Message = o.problem.Error()
		s.ClusterWide.Health.Status = "Unknown"
	}
	if left := l.leftNodes(o); left > 0 && l.config.Mode == config.Observe && s.Message == "" {
		s.Message = fmt.Sprintf("%d nodes carry taints of mode act, which alone takes them off", left)
	}
	candidates := map[string]int{}
	if o.plan != nil {
		l.planStatus(o, s, candidates)
	}
	nodes := map[string]int{}
	for _, group := range o.groupOf {
		nodes[group]++
	}
	for i := range o.groups {
		g := &o.groups[i]
		s.NodeGroups = append(s.NodeGroups, GroupStatus{Name: g.ID, MinSize: g.Min, MaxSize: g.Max, Target: g.Target,
			Nodes: nodes[g.ID], Candidates: candidates[g.ID]})
	}
	return s
}

func (l *leader) leftNodes(o *loop) (left int) {
	for name := range l.cluster.marked {
		if node := l.cluster.nodes[name]; node != nil && l.left(o, node) {
			left++
		}
	}
	return left
}

// planStatus adds what the plan tells, and counts the candidates of each group.
func (l *leader) planStatus(o *loop, s *Status, candidates map[string]int) {
	down := &s.ClusterWide.ScaleDown
	down.Brake, down.Limit = strings.TrimSpace(o.plan.GetBrake()+" "+o.plan.GetBrakeText()), o.plan.GetLimit()
	if strings.HasPrefix(down.Brake, "Cluster") {
		s.ClusterWide.Health.Status = "Unhealthy"
	}
	down.Candidates = len(o.plan.GetRemove())
	if down.Candidates > 0 {
		down.Status = "CandidatesPresent"
	}
	for _, r := range o.plan.GetRemove() {
		candidates[r.GetNodeGroup()]++
		if len(down.Next) < topEntries {
			wait := "now"
			if !r.GetStart() {
				wait = fmt.Sprintf("%s, timer ends %s", r.GetWaits(), time.Unix(r.GetReadyAtS(), 0).UTC().Format(time.RFC3339))
			}
			down.Next = append(down.Next, fmt.Sprintf("%s: %s", o.plan.nameOf[r.GetSlot()], wait))
		}
	}
	counts := map[string]int{}
	for _, k := range o.plan.GetKeep() {
		counts[k.GetReason()]++
		if counts[k.GetReason()] == 1 && k.GetAdvice() != "" && len(down.Why) < topEntries {
			down.Why = append(down.Why, fmt.Sprintf("%s: %s: %s", o.plan.nameOf[k.GetSlot()], k.GetReason(), k.GetAdvice()))
		}
	}
	for reason, nodes := range counts {
		down.TopBlockers = append(down.TopBlockers, Blocker{reason, nodes})
	}
	slices.SortFunc(down.TopBlockers, func(a, b Blocker) int {
		if a.Nodes != b.Nodes {
			return b.Nodes - a.Nodes
		}
		return strings.Compare(a.Reason, b.Reason)
	})
	down.TopBlockers = down.TopBlockers[:min(len(down.TopBlockers), topEntries)]
}

// statusWriter writes the ConfigMap.
type statusWriter struct {
	client          kubernetes.Interface
	namespace, name string
}

// reference is what events are about that concern no single node.
func (w *statusWriter) reference() *v1.ObjectReference {
	return &v1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.namespace, Name: w.name}
}

// lastUpdated is the annotation of Cluster Autoscaler's ConfigMap.
const lastUpdated = "cluster-autoscaler.kubernetes.io/last-updated"

func (w *statusWriter) write(ctx context.Context, s *Status) error {
	text, err := yaml.Marshal(s)
	if err != nil {
		return err
	}
	maps := w.client.CoreV1().ConfigMaps(w.namespace)
	object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.name, Annotations: map[string]string{lastUpdated: s.Time}},
		Data: map[string]string{"status": string(text)}}
	_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, object, metav1.CreateOptions{})
	}
	return err
}
