package drain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/internal/testing/vectortest"
)

// vectorFuncs are the rows that this package answers. Each returns what it got under the keys of `want`.
var vectorFuncs = map[string]vectortest.Answer{
	"start_deletion":     startDeletionRow,
	"daemonset_eviction": daemonSetEvictionRow,
	"drain_node":         drainNodeRow,
	"eviction_order":     evictionOrderRow,
	"priority_groups":    priorityGroupsRow,
	"delete_batch":       deleteBatchRow,
	"soft_taints":        softTaintsRow,
}

// overruled are rows whose answer differs on purpose, and why.
var overruled = map[string]string{
	"DR-NODE-502": "nothing deletes a pod without an eviction",
}

// TestVectors has a subtest per row that this package answers, named by its id.
func TestVectors(t *testing.T) {
	vectortest.Run(t, "drain_actuation", vectorFuncs, overruled)
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func startDeletionRow(t *testing.T, in json.RawMessage) map[string]any {
	var q struct {
		Groups map[string]struct {
			Atomic bool `json:"atomic"`
			Size   int  `json:"size"`
		} `json:"groups"`
		Empty            []string       `json:"empty"`
		Drain            []string       `json:"drain"`
		MovablePods      map[string]int `json:"movable_pods"`
		DaemonSetPods    map[string]int `json:"daemonset_pods"`
		TaintFails       []string       `json:"taint_fails"`
		EvictionFails    []string       `json:"eviction_fails"`
		CloudDeleteFails []string       `json:"cloud_delete_fails"`
		ForEmpty         bool           `json:"daemonset_eviction_for_empty"`
		ForOccupied      bool           `json:"daemonset_eviction_for_occupied"`
		MaxPodEviction   int            `json:"max_pod_eviction_s"`
		EvictionRetry    int            `json:"eviction_retry_s"`
	}
	vectortest.Decode(t, in, &q)
	w := newWorld(t)
	w.taintFails, w.cloudFails = q.TaintFails, q.CloudDeleteFails
	for _, pod := range q.EvictionFails {
		w.answers[pod] = tooMany()
	}
	var plan []*Removal
	for i, name := range slices.Concat(q.Empty, q.Drain) {
		group := strings.TrimRight(name, "0123456789")
		r := &Removal{Node: w.addNode(name), Group: group, Atomic: q.Groups[group].Atomic, Empty: i < len(q.Empty),
			Wave: 2, Moves: map[types.UID]bool{}}
		if r.Empty {
			r.Wave = 1 // as the engine has it
		}
		for k := range q.MovablePods[name] {
			pod := w.addPod(fmt.Sprintf("%s-%d", name, k), name)
			if !r.Empty {
				r.Pods, r.Moves[pod.UID] = append(r.Pods, pod), true
			}
		}
		for k := range q.DaemonSetPods[name] {
			w.addDaemonSetPod(fmt.Sprintf("%s-ds-%d", name, k), name)
		}
		plan = append(plan, r)
	}
	options := testOptions()
	options.DaemonSetEvictionForEmptyNodes, options.DaemonSetEvictionForOccupiedNodes = q.ForEmpty, q.ForOccupied
	options.MaxPodEvictionTime.Duration = seconds(q.MaxPodEviction)
	options.EvictionRetryInterval.Duration = seconds(q.EvictionRetry)
	a := w.actuator(options)
	outcome, err := a.Start(t.Context(), plan)
	if (err != nil) != (outcome == Failed) {
		t.Errorf("outcome %s with error %v", outcome, err)
	}
	a.Wait()
	results := map[string]any{}
	for _, ended := range a.TakeEnded() {
		results[ended.Node.Name] = ended.Result
	}
	return map[string]any{"result": outcome, "deleted": w.deleted, "evicted": w.evicted, "untainted": w.untainted(),
		"taint_history": w.history, "untouched": w.untouched(), "node_results": results}
}

func daemonSetEvictionRow(t *testing.T, in json.RawMessage) map[string]any {
	var q struct {
		Pods       []string          `json:"daemonset_pods"`
		ByDefault  bool              `json:"evict_by_default"`
		Annotation map[string]string `json:"annotation"`
	}
	vectortest.Decode(t, in, &q)
	w := newWorld(t)
	node := w.addNode("n")
	for _, name := range q.Pods {
		pod := w.addDaemonSetPod(name, "n")
		if value, ok := q.Annotation[name]; ok {
			pod.Annotations = map[string]string{annotationDaemonSetEviction: value}
			w.update(pod)
		}
	}
	options := testOptions()
	options.DaemonSetEvictionForEmptyNodes = q.ByDefault
	a := w.actuator(options)
	if _, err := a.Start(t.Context(), []*Removal{{Node: node, Group: "g", Empty: true}}); err != nil {
		t.Error(err)
	}
	a.Wait()
	return map[string]any{"evicted": w.evicted}
}

func drainNodeRow(t *testing.T, in json.RawMessage) map[string]any {
	var q struct {
		Pods []struct {
			Name      string `json:"name"`
			DaemonSet bool   `json:"daemonset"`
		} `json:"pods"`
		EvictionAnswer map[string]string `json:"eviction_answer"`
		GetAnswer      map[string]string `json:"get_answer"`
		MaxPodEviction int               `json:"max_pod_eviction_s"`
		EvictionRetry  int               `json:"eviction_retry_s"`
		MaxGraceful    int               `json:"max_graceful_termination_s"`
		Headroom       int               `json:"termination_headroom_s"`
		ForOccupied    bool              `json:"daemonset_eviction_for_occupied"`
	}
	vectortest.Decode(t, in, &q)
	w := newWorld(t)
	w.addNode("n")
	var moving []*v1.Pod
	for _, p := range q.Pods {
		if q.GetAnswer[p.Name] != "not_found" {
			t.Fatalf("get_answer %q", q.GetAnswer[p.Name])
		}
		if q.EvictionAnswer[p.Name] == "refused" {
			w.answers[p.Name] = tooMany()
		}
		if p.DaemonSet {
			w.addDaemonSetPod(p.Name, "n")
		} else {
			moving = append(moving, w.addPod(p.Name, "n"))
		}
	}
	options := testOptions()
	options.MaxPodEvictionTime.Duration = seconds(q.MaxPodEviction)
	options.EvictionRetryInterval.Duration = seconds(q.EvictionRetry)
	options.MaxGracefulTerminationSec, options.TerminationHeadroom.Duration = q.MaxGraceful, seconds(q.Headroom)
	options.DaemonSetEvictionForOccupiedNodes = q.ForOccupied
	err := w.drain(options, moving)
	pods := map[string]any{}
	for _, pod := range moving {
		evicted := slices.Contains(w.evicted, pod.Name)
		// Each is asked for once here: one that is refused has no time left.
		pods[pod.Name] = map[string]bool{"evicted": evicted, "timed_out": !evicted && w.attempts[pod.Name] == 1,
			"error": !evicted}
	}
	return map[string]any{"error": err != nil, "pods": pods}
}

// drain removes the node n, of which these pods move, and returns why that failed.
func (w *world) drain(options Options, moving []*v1.Pod) error {
	w.t.Helper()
	a := w.actuator(options)
	if _, err := a.Start(w.t.Context(), drainOf(w.node("n").DeepCopy(), moving...)); err != nil {
		w.t.Error(err)
	}
	a.Wait()
	return a.TakeEnded()[0].Err
}

type priorityRow struct {
	Groups []struct {
		Priority int32 `json:"priority"`
		Grace    int   `json:"grace_s"`
	} `json:"priority_groups"`
	Pods map[string]int32 `json:"pods"`
}

func (q *priorityRow) options() Options {
	options := testOptions()
	for _, g := range q.Groups {
		options.DrainPriorityConfig += fmt.Sprintf("%d:%d,", g.Priority, g.Grace)
	}
	return options
}

func (q *priorityRow) pods(w *world) (pods []*v1.Pod) {
	for name, priority := range q.Pods {
		pod := w.addPod(name, "n")
		pod.Spec.Priority = &priority
		w.update(pod)
		pods = append(pods, pod)
	}
	return pods
}

func evictionOrderRow(t *testing.T, in json.RawMessage) map[string]any {
	var q priorityRow
	vectortest.Decode(t, in, &q)
	w := newWorld(t)
	w.addNode("n")
	if err := w.drain(q.options(), q.pods(w)); err != nil {
		t.Error(err)
	}
	return map[string]any{"order": w.evicted}
}

// priorityGroupsRow tells groups by the grace period that their pods are given.
func priorityGroupsRow(t *testing.T, in json.RawMessage) map[string]any {
	var q priorityRow
	vectortest.Decode(t, in, &q)
	w := newWorld(t)
	w.addNode("n")
	if err := w.drain(q.options(), q.pods(w)); err != nil {
		t.Error(err)
	}
	groups := map[string]any{}
	for _, group := range q.Groups {
		names := []string{}
		for name, grace := range w.grace {
			if grace == int64(group.Grace) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		groups[strconv.Itoa(int(group.Priority))] = names
	}
	return map[string]any{"groups": groups}
}

// deleteBatchRow has nodes fail by a pod that the plan does not know. Whether they are ready before others or after
// them does not matter: here all are at once.
func deleteBatchRow(t *testing.T, in json.RawMessage) map[string]any {
	var q struct {
		Groups map[string]struct {
			Atomic bool `json:"atomic"`
			Size   int  `json:"size"`
		} `json:"groups"`
		Steps [][]any `json:"steps"`
	}
	vectortest.Decode(t, in, &q)
	w := newWorld(t)
	var plan []*Removal
	for _, step := range q.Steps {
		group := step[1].(string)
		for k := int(step[2].(float64)); k < int(step[3].(float64)); k++ {
			name := fmt.Sprintf("%s-%d", group, k)
			plan = append(plan,
				&Removal{Node: w.addNode(name), Group: group, Atomic: q.Groups[group].Atomic, Empty: true})
			if step[0] == "abort" {
				w.addPod("on-"+name, name)
			}
		}
	}
	a := w.actuator(testOptions())
	if _, err := a.Start(t.Context(), plan); err != nil {
		t.Error(err)
	}
	a.Wait()
	failed := []string{}
	for _, ended := range a.TakeEnded() {
		if ended.Err != nil {
			failed = append(failed, ended.Node.Name)
		}
	}
	slices.Sort(failed)
	return map[string]any{"sent": len(w.deleted), "failed": failed}
}

func softTaintsRow(t *testing.T, in json.RawMessage) map[string]any {
	var q struct {
		MaxCount int      `json:"max_count"`
		MaxTime  int      `json:"max_time_s"`
		Cost     int      `json:"cost_per_update_s"`
		Unneeded []string `json:"unneeded"`
		Loops    int      `json:"loops"`
	}
	vectortest.Decode(t, in, &q)
	w := newWorld(t)
	w.patchCost = seconds(q.Cost)
	for _, name := range q.Unneeded { // empty nodes
		w.addNode(name)
	}
	soft := NewSoftTaints(w.client, 1, seconds(q.MaxTime))
	var counts []int
	for range q.Loops {
		soft.Begin(t.Context(), softTaintsOf(t, w.nodes(), q.MaxCount), func(_ time.Duration, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		soft.Wait()
		count := 0
		for _, node := range w.nodes() {
			if HasTaint(node, SoftTaint) {
				count++
			}
		}
		counts = append(counts, count)
	}
	return map[string]any{"tainted_after_loop": counts}
}
