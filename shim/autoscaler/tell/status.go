package tell

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/internal/text"
	"loadline.dev/shim/sizing"
)

// topEntries is how many objects that are left out the status and the log name.
const topEntries = 5

// statusOf completes the status of a report with what only this process knows.
func (t *Teller) statusOf(o *plan.Loop, s *loadlinev1.AutoscalerStatus) *loadlinev1.AutoscalerStatus {
	all := s.ClusterWide
	all.Health.Pods, all.ScaleUp.Result, all.ScaleDown.Result = int32(len(t.cluster.Pods)), o.GrowthOutcome, o.Outcome
	all.Health.NodeCounts.Registered.Total = int32(len(t.cluster.Nodes))
	for _, name := range slices.Sorted(maps.Keys(o.UnderWay)) {
		all.ScaleDown.Removing = append(all.ScaleDown.Removing, fmt.Sprintf("%s: %s", name, o.UnderWay[name].Stage))
	}
	if o.Problem != nil {
		s.Message, all.Health.Status = o.Problem.Error(), "Unknown"
	}
	if kept := all.Slack; kept != nil {
		kept.Keep, kept.Running = t.config.Slack.Keep, int32(len(t.cluster.Standing))
		if t.config.Mode != config.Act {
			kept.Keep = config.SlackReport
		}
		if o.SlackProblem != nil {
			kept.Problem = o.SlackProblem.Error()
		}
	}
	if moves := all.Replacement; moves != nil {
		moves.Bill = cmp.Or(moves.Bill, t.said.bill)
		t.said.bill = moves.Bill
	}
	for _, g := range s.NodeGroups {
		if sized := o.Sized[g.Name]; g.Size != nil && sized != nil {
			g.Size.Warnings = sizing.Warnings(sized.Size, o.SizePods)
		}
	}
	s.Warnings, s.LeftOut = slices.Concat(o.Warnings, s.Warnings), leftOutStatus(o)
	text.BoundAll(s, plan.MostStatusText, mostStatusEntries)
	return s
}

// reportOf returns what the engine tells of a loop, or else what is known without a plan.
func (t *Teller) reportOf(o *plan.Loop) *loadlinev1.LoopReport {
	if report := o.Report(); report != nil {
		return report
	}
	counts := &loadlinev1.NodeCounts{Registered: &loadlinev1.RegisteredNodeCounts{}}
	status := &loadlinev1.AutoscalerStatus{Time: o.Now.UTC().Format(time.RFC3339), AutoscalerStatus: "Running",
		Mode: t.config.Mode, ClusterWide: &loadlinev1.ClusterWideStatus{
			Health:    &loadlinev1.ClusterHealth{Status: "Unknown", NodeCounts: counts},
			ScaleUp:   &loadlinev1.ScaleUpStatus{Status: "NoActivity"},
			ScaleDown: &loadlinev1.ScaleDownStatus{Status: "NoCandidates"}}}
	if t.config.Decides(config.ReplaceDecision) {
		status.ClusterWide.Replacement = &loadlinev1.ReplacementStatus{Status: "NoActivity"}
	}
	going := map[string]int32{}
	for _, removal := range o.UnderWay {
		going[removal.Group]++
	}
	report := &loadlinev1.LoopReport{Status: status, NodesThatGo: &loadlinev1.PageTable{Title: "Nodes that go",
		None: "None is going.", RowsAre: "node",
		Header: []string{"NODE", "NODE GROUP", "STATE", "NOT NEEDED FOR", "PODS TO MOVE"}}}
	for _, g := range o.Groups {
		low, high, target := plan.Number(g.Min), plan.Number(g.Max), plan.Number(g.Target)
		status.NodeGroups = append(status.NodeGroups, &loadlinev1.NodeGroupStatus{Name: g.ID,
			Health: &loadlinev1.NodeGroupHealth{Status: "Unknown", CloudProviderTarget: target, MinSize: low, MaxSize: high}})
		report.Groups = append(report.Groups, &loadlinev1.PageGroup{Name: g.ID, MinSize: low, MaxSize: high,
			Target: target, Nodes: target, Going: going[g.ID]})
	}
	return report
}

// The annotation of Cluster Autoscaler's ConfigMap with the time at which it was written, and the layout of the time.
const (
	LastUpdated       = "cluster-autoscaler.kubernetes.io/last-updated"
	LastUpdatedLayout = "2006-01-02 15:04:05.999999999 -0700 MST"
)

// cloudProvider is the annotation that names the provider.
const cloudProvider = "loadline.dev/cloud-provider"

// write writes the ConfigMap.
func (t *Teller) write(ctx context.Context, s *loadlinev1.AutoscalerStatus) error {
	written := s.Time
	if t.About.Name == upstreamStatus {
		written = upstreamTime(s.Time)
	}
	text, err := yamlOf(s, func(all map[string]any) {
		all["cloudProvider"] = t.config.CloudProvider.Kind
		if t.About.Name == upstreamStatus {
			t.said.inUpstreamForm(all, s)
			all["time"] = written
		}
	})
	if err != nil {
		return err
	}
	maps := t.client.CoreV1().ConfigMaps(t.About.Namespace)
	object, err := maps.Get(ctx, t.About.Name, metav1.GetOptions{})
	isNew := apierrors.IsNotFound(err)
	switch {
	case isNew, apierrors.IsForbidden(err): // with rights of an earlier version, what others have added is lost
		object = &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.About.Namespace, Name: t.About.Name}}
	case err != nil:
		return err
	}
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, LastUpdated, written)
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, cloudProvider, t.config.CloudProvider.Kind)
	object.Data = map[string]string{"status": string(text)}
	if isNew {
		_, err = maps.Create(ctx, object, metav1.CreateOptions{})
		return plan.WhyMissing(err, "ConfigMap", object.Namespace, object.Name, "manifests/autoscaler/10-rbac.yaml")
	}
	object.ResourceVersion = "" // the newest status counts, whoever has written meanwhile
	_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	return err
}

// yamlOf returns a status as people read it: numbers also where they are 0, lists and texts only where they are not
// empty.
func yamlOf(s *loadlinev1.AutoscalerStatus, add ...func(all map[string]any)) ([]byte, error) {
	data, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(s)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // large ones stay as they are
	if err := decoder.Decode(&all); err != nil {
		return nil, err
	}
	for _, add := range add {
		add(all)
	}
	return yaml.Marshal(withoutEmpty(all))
}

func withoutEmpty(of any) any {
	switch v := of.(type) {
	case map[string]any:
		for key, value := range v {
			if v[key] = withoutEmpty(value); v[key] == nil {
				delete(v, key)
			}
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
		return slices.DeleteFunc(v, func(entry any) bool { return entry == nil })
	case string:
		if v == "" {
			return nil
		}
	}
	return of
}
