package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"loadline.dev/shim/autoscaler/config"
)

// drainStep is a group with its pods.
type drainStep struct {
	config.PriorityGroup
	pods       []*v1.Pod
	bestEffort []*v1.Pod // DaemonSet pods: a refusal that lasts is no failure, and nobody waits for their end
}

// stepsOf sorts pods into groups, lowest priority first. A pod below the lowest group belongs to it. `groups` is sorted
// by priority and not empty.
func stepsOf(groups []config.PriorityGroup, pods, bestEffort []*v1.Pod) []drainStep {
	steps := make([]drainStep, len(groups))
	for i, group := range groups {
		steps[i].PriorityGroup = group
	}
	step := func(pod *v1.Pod) *drainStep {
		i := len(groups) - 1
		for i > 0 && groups[i].Priority > corev1helpers.PodPriority(pod) {
			i--
		}
		return &steps[i]
	}
	for _, pod := range pods {
		s := step(pod)
		s.pods = append(s.pods, pod)
	}
	for _, pod := range bestEffort {
		s := step(pod)
		s.bestEffort = append(s.bestEffort, pod)
	}
	return steps
}

// PodResult is what became of a pod that was to be evicted.
type PodResult struct {
	Pod *v1.Pod
	// Evicted says that the API server has accepted the eviction, or a deletion in its place.
	Evicted bool
	// TimedOut says that it was refused until the time was up, or that the pod was still there then.
	TimedOut bool
	Err      error
}

// stillOurs fails once the node was replaced, or another leader has taken it over.
type stillOurs func(context.Context) error

// stillOurs returns the check of one removal. Other errors pass: the steps that follow meet them too.
func (a *Actuator) stillOurs(d *deletion) stillOurs {
	return func(ctx context.Context) error {
		if _, err := a.nodes.confirm(ctx, d.id); errors.Is(err, errNodeGone) || errors.Is(err, errNotOurs) {
			return err
		}
		return nil
	}
}

// drain evicts the pods of a node step by step, and waits for each step to be gone. Nothing further is evicted after
// the first step in which a pod stays, nor when `check` fails. The results are those of `pods`, in that order, as far
// as they were tried.
func (a *Actuator) drain(ctx context.Context, node string, check stillOurs,
	full, daemonSet []*v1.Pod) ([]PodResult, error) {
	groups, _ := a.options.PriorityGroups() // checked with the configuration
	bestEffort := daemonSet
	if len(groups) == 0 {
		groups = []config.PriorityGroup{{Grace: time.Duration(a.options.MaxGracefulTerminationSec) * time.Second}}
	} else {
		full, bestEffort = slices.Concat(full, daemonSet), nil // groups name all pods
	}
	var results []PodResult
	for i, step := range stepsOf(groups, full, bestEffort) {
		if i > 0 {
			if err := check(ctx); err != nil {
				return results, err
			}
		}
		done, err := a.drainStep(ctx, node, check, step)
		results = append(results, done...)
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

func (a *Actuator) drainStep(ctx context.Context, node string, check stillOurs, step drainStep) ([]PodResult, error) {
	if len(step.pods)+len(step.bestEffort) == 0 {
		return nil, nil
	}
	results := make([]PodResult, len(step.pods))
	var all sync.WaitGroup
	for i, pod := range step.pods {
		all.Go(func() { results[i] = a.evictPod(ctx, pod, step.Grace, check) })
	}
	for _, pod := range step.bestEffort {
		all.Go(func() {
			_ = a.evict(ctx, pod, min(graceOf(pod), step.Grace), a.options.MaxPodEvictionTime.Duration, check)
		})
	}
	all.Wait()
	var errs []error
	for i := range results {
		if err := results[i].Err; err != nil {
			errs = append(errs, fmt.Errorf("pod %s: %w", nameOf(results[i].Pod), err))
		}
	}
	if len(errs) > 0 {
		return results, errors.Join(errs...)
	}
	return results, a.awaitEnd(ctx, node, step.Grace, results)
}

func (a *Actuator) evictPod(ctx context.Context, pod *v1.Pod, longest time.Duration, check stillOurs) PodResult {
	if pod.DeletionTimestamp != nil { // another eviction could only shorten its grace period
		return PodResult{Pod: pod, Evicted: true}
	}
	result := PodResult{Pod: pod}
	grace := min(graceOf(pod), longest)
	result.Err = a.evict(ctx, pod, grace, a.options.MaxPodEvictionTime.Duration, check)
	if result.Err != nil && ctx.Err() == nil {
		result.Err = a.deleteDespiteBudget(ctx, pod, grace, result.Err)
	}
	result.Evicted = result.Err == nil
	var given *evictionError
	result.TimedOut = errors.As(result.Err, &given) && given.timedOut
	if result.Evicted {
		a.noteEviction(pod)
	}
	return result
}

// firstPoll is how soon it is seen for the first time whether pods have ended. Most end in no time; for those that do
// not, the time doubles up to the interval, and then they are looked at once in each of it.
const firstPoll = 250 * time.Millisecond

// nextPoll returns when pods are looked at next, after they have been at that time; both since the evictions.
func nextPoll(at, poll time.Duration) time.Duration {
	switch {
	case at == 0:
		return min(firstPoll, poll)
	case at < poll:
		return min(2*at, poll)
	}
	return at + poll
}

// awaitEnd waits until none of the evicted pods is on the node any more.
func (a *Actuator) awaitEnd(ctx context.Context, node string, grace time.Duration, results []PodResult) error {
	until := time.Now().Add(grace + a.options.TerminationHeadroom.Duration)
	for at := time.Duration(0); ; at = nextPoll(at, a.options.PollInterval.Duration) {
		left, err := a.stillThere(ctx, node, results)
		if err == nil && len(left) == 0 {
			return nil
		}
		if !time.Now().Before(until) {
			if err != nil {
				return fmt.Errorf("cannot see whether pods have ended: %w", err)
			}
			for _, result := range left {
				result.TimedOut = true
				result.Err = fmt.Errorf("still there %v after its eviction", grace+a.options.TerminationHeadroom.Duration)
			}
			return fmt.Errorf("pod %s: %w", nameOf(left[0].Pod), left[0].Err)
		}
		if err := sleep(ctx, nextPoll(at, a.options.PollInterval.Duration)-at); err != nil {
			return err
		}
	}
}

// stillThere returns the results of pods that are on the node. One of the same name with another UID is another pod.
func (a *Actuator) stillThere(ctx context.Context, node string, results []PodResult) ([]*PodResult, error) {
	if len(results) == 0 {
		return nil, nil
	}
	pods, err := podsOn(ctx, a.nodes.client, node)
	if err != nil {
		return nil, err
	}
	var left []*PodResult
	for i := range results {
		same := func(pod *v1.Pod) bool { return pod.UID == results[i].Pod.UID && nameOf(pod) == nameOf(results[i].Pod) }
		if slices.ContainsFunc(pods, same) {
			left = append(left, &results[i])
		}
	}
	return left, nil
}
