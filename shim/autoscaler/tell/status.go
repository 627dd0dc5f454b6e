package tell

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/internal/text"
)

// Status is what the ConfigMap tells, in the shape of Cluster Autoscaler's where that has a word for it.
type Status struct {
	Time             string `json:"time"`
	AutoscalerStatus string `json:"autoscalerStatus"`
	Mode             string `json:"mode"`
	Message          string `json:"message,omitempty"`
	// Warnings are about the configuration and what it names, and do not end by themselves.
	Warnings    []string       `json:"warnings,omitempty"`
	LeftOut     *LeftOutStatus `json:"leftOut,omitempty"`
	ClusterWide ClusterStatus  `json:"clusterWide"`
	NodeGroups  []GroupStatus  `json:"nodeGroups,omitempty"`
}

// ClusterStatus is that of all nodes.
type ClusterStatus struct {
	Health    HealthStatus    `json:"health"`
	ScaleUp   ScaleUpStatus   `json:"scaleUp"`
	ScaleDown ScaleDownStatus `json:"scaleDown"`
	// Slack is nil where somebody else decides it.
	Slack *SlackStatus `json:"slack,omitempty"`
	// Replacement is nil where nodes are not replaced.
	Replacement *ReplacementStatus `json:"replacement,omitempty"`
}

// HealthStatus counts nodes.
type HealthStatus struct {
	Status     string     `json:"status"`
	Pods       int        `json:"pods"`
	NodeCounts NodeCounts `json:"nodeCounts"`
}

// NodeCounts counts nodes by how far they are. NotStarted have registered and are not ready yet, Unregistered are on
// their way, LongUnregistered did not register in time or cannot be created.
type NodeCounts struct {
	Registered       RegisteredCounts `json:"registered"`
	Unregistered     int              `json:"unregistered"`
	LongUnregistered int              `json:"longUnregistered"`
}

// RegisteredCounts counts nodes that have registered. Those that go are in Total only.
type RegisteredCounts struct {
	Total      int `json:"total"`
	Ready      int `json:"ready"`
	NotStarted int `json:"notStarted"`
	Unready    int `json:"unready"`
}

// ScaleUpStatus tells which groups grow, and for what.
type ScaleUpStatus struct {
	// Status is InProgress, NoActivity or Backoff; Result what came of the last loop.
	Status string `json:"status"`
	Result string `json:"result"`
	// PendingPods wait for a node: Placed of them have one that is there or on its way, Unplaced none, and Why says
	// why. Deferred are planned for in the next loops.
	PendingPods int    `json:"pendingPods"`
	Placed      int    `json:"placed"`
	Unplaced    int    `json:"unplaced"`
	Deferred    int    `json:"deferred,omitempty"`
	Why         string `json:"why,omitempty"`
	// Growth is what groups are to grow by, with the reason; in mode observe nobody has asked for it.
	Growth []string `json:"growth,omitempty"`
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
	Name      string               `json:"name"`
	Health    GroupHealth          `json:"health"`
	ScaleUp   GroupScaleUpStatus   `json:"scaleUp"`
	ScaleDown GroupScaleDownStatus `json:"scaleDown"`
	// Size is nil unless the group is sized by how full it is.
	Size *GroupSizeStatus `json:"size,omitempty"`
}

// GroupHealth counts the nodes of a group. Unhealthy is one of which no new node came in time.
type GroupHealth struct {
	Status     string     `json:"status"`
	NodeCounts NodeCounts `json:"nodeCounts"`
	Target     int        `json:"cloudProviderTarget"`
	MinSize    int        `json:"minSize"`
	MaxSize    int        `json:"maxSize"`
}

// GroupScaleUpStatus says whether a group grows.
type GroupScaleUpStatus struct {
	// Status is InProgress, NoActivity or Backoff.
	Status      string       `json:"status"`
	BackoffInfo *BackoffInfo `json:"backoffInfo,omitempty"`
}

// BackoffInfo is why a group does not grow, and until when.
type BackoffInfo struct {
	ErrorCode    string `json:"errorCode"`
	ErrorMessage string `json:"errorMessage"`
	Until        string `json:"until"`
}

// GroupScaleDownStatus counts the nodes of a group that can go.
type GroupScaleDownStatus struct {
	// Status is CandidatesPresent or NoCandidates.
	Status     string `json:"status"`
	Candidates int    `json:"candidates"`
}

// What status of growth there is, and of health.
const (
	inProgress = "InProgress"
	noActivity = "NoActivity"
	inBackoff  = "Backoff"
	healthy    = "Healthy"
	unhealthy  = "Unhealthy"
)

// topEntries is how many entries each list of the status has at most.
const topEntries = 5

func (t *Teller) statusOf(o *plan.Loop) *Status {
	s := &Status{Time: o.Now.UTC().Format(time.RFC3339), AutoscalerStatus: "Running", Mode: t.config.Mode,
		Warnings: o.Warnings, LeftOut: leftOutStatus(o)}
	s.ClusterWide.Health = HealthStatus{Status: healthy, Pods: len(t.cluster.Pods), NodeCounts: t.nodeCounts(o)}
	down := &s.ClusterWide.ScaleDown
	down.Status, down.Result = "NoCandidates", o.Outcome
	for _, name := range slices.Sorted(maps.Keys(o.UnderWay)) {
		d := o.UnderWay[name]
		down.Removing = append(down.Removing, fmt.Sprintf("%s: %s", name, d.Stage))
	}
	if o.Problem != nil {
		s.Message = o.Problem.Error()
		s.ClusterWide.Health.Status = "Unknown"
	}
	if left := o.Fleet().GetAbandonedNodes(); left > 0 && t.config.Mode == config.Observe && s.Message == "" {
		s.Message = fmt.Sprintf("%d nodes carry taints of mode act, which alone takes them off", left)
	}
	candidates := map[string]int{}
	if o.Plan != nil {
		t.planStatus(o, s, candidates)
	}
	s.ClusterWide.ScaleUp, s.ClusterWide.Slack = t.scaleUpStatus(o), t.slackStatus(o)
	if t.config.Decides(config.ReplaceDecision) {
		s.ClusterWide.Replacement = t.Metrics.replacements.status(o.Answer().GetReplacement())
	}
	for _, g := range o.Groups {
		s.NodeGroups = append(s.NodeGroups, t.groupStatus(o, g, candidates[g.ID]))
	}
	s.Warnings = slices.Clone(s.Warnings) // those of the loop stay as they are
	text.BoundAll(s, plan.MostStatusText, mostStatusEntries)
	return s
}

// planStatus adds what the plan tells, and counts the candidates of each group.
func (t *Teller) planStatus(o *plan.Loop, s *Status, candidates map[string]int) {
	down := &s.ClusterWide.ScaleDown
	down.Brake, down.Limit = strings.TrimSpace(o.Plan.GetBrake()+" "+o.Plan.GetBrakeText()), o.Plan.GetLimit()
	if strings.HasPrefix(down.Brake, "Cluster") {
		s.ClusterWide.Health.Status = unhealthy
	}
	down.Candidates = len(o.Plan.GetRemove())
	if down.Candidates > 0 {
		down.Status = "CandidatesPresent"
	}
	for _, r := range o.Plan.GetRemove() {
		candidates[r.GetNodeGroup()]++
		if len(down.Next) < topEntries {
			wait := "now"
			if !r.GetStart() {
				wait = fmt.Sprintf("%s, timer ends %s", r.GetWaits(),
					time.Unix(r.GetReadyAtS(), 0).UTC().Format(time.RFC3339))
			}
			down.Next = append(down.Next, fmt.Sprintf("%s: %s", o.Plan.NameOf[r.GetSlot()], wait))
		}
	}
	counts := map[string]int{}
	for _, stay := range o.Plan.GetStay() {
		k := stay.GetFirst()
		if counts[k.GetReason()] == 0 && k.GetAdvice() != "" && len(down.Why) < topEntries {
			down.Why = append(down.Why,
				fmt.Sprintf("%s: %s: %s", o.Plan.NameOf[k.GetSlot()], k.GetReason(), k.GetAdvice()))
		}
		counts[k.GetReason()] += len(stay.GetSlots())
	}
	for reason, nodes := range counts {
		down.TopBlockers = append(down.TopBlockers, Blocker{reason, nodes})
	}
	slices.SortFunc(down.TopBlockers, func(a, b Blocker) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), strings.Compare(a.Reason, b.Reason))
	})
	down.TopBlockers = down.TopBlockers[:min(len(down.TopBlockers), topEntries)]
}

// lastUpdated is the annotation of Cluster Autoscaler's ConfigMap.
const lastUpdated = "cluster-autoscaler.kubernetes.io/last-updated"

// write writes the ConfigMap.
func (t *Teller) write(ctx context.Context, s *Status) error {
	text, err := yaml.Marshal(s)
	if err != nil {
		return err
	}
	maps := t.client.CoreV1().ConfigMaps(t.About.Namespace)
	object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.About.Namespace, Name: t.About.Name,
		Annotations: map[string]string{lastUpdated: s.Time}},
		Data: map[string]string{"status": string(text)}}
	_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, object, metav1.CreateOptions{})
	}
	return err
}
