package drain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// refusal is why an eviction was not accepted.
type refusal string

// Kinds of refusals. Each is a label of a metric.
const (
	refusedByBudget refusal = "budget" // 429 with the cause of budgets: tried again until the time is up
	// Other 429, of priority and fairness: no budget was looked at; tried again.
	refusedBusy      refusal = "busy"
	refusedByBudgets refusal = "several_budgets"  // 500: the API server never evicts such a pod
	refusedForbidden refusal = "forbidden"        // 403
	refusedInvalid   refusal = "invalid"          // other 4xx: the same request fails again
	refusedError     refusal = "error"            // 5xx, time-outs, lost connections: tried again
	refusedConflict  refusal = "conflict"         // 409: tried again with what is there then
	refusedEnding    refusal = "namespace_ending" // 403 in a namespace that is being deleted: its pods end anyway
)

// retried says whether the next attempt may do better.
func (r refusal) retried() bool {
	switch r {
	case refusedByBudgets, refusedForbidden, refusedInvalid:
		return false
	}
	return true
}

// severalBudgets is what the API server says, with status 500, of a pod under more than one disruption budget.
const severalBudgets = "more than one PodDisruptionBudget"

// refusalOf tells the answers to an eviction apart. The error is not nil and not NotFound.
func refusalOf(err error) refusal {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsTooManyRequests(err) && apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
		return refusedByBudget
	case apierrors.IsTooManyRequests(err):
		return refusedBusy
	case apierrors.IsConflict(err):
		return refusedConflict
	case apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause):
		return refusedEnding
	case apierrors.IsForbidden(err):
		return refusedForbidden
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), severalBudgets):
		return refusedByBudgets
	case errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500 &&
		!apierrors.IsTimeout(err):
		return refusedInvalid
	}
	return refusedError
}

// deletedDespiteBudget is heard of by Hooks.Evicted.
const deletedDespiteBudget = "deleted_despite_budget"

// evictionError is an eviction that was given up.
type evictionError struct {
	refusal  refusal
	timedOut bool
	last     error
}

func (e *evictionError) Error() string {
	if e.timedOut {
		return fmt.Sprintf("not evicted in time: %v", e.last)
	}
	return fmt.Sprintf("not evicted: %v", e.last)
}

func (e *evictionError) Unwrap() error { return e.last }

// evict asks for the eviction of a pod until it is accepted, the pod is gone, or it is pointless to ask again: also
// when `check`, which is asked before each further attempt, fails. A `patience` of 0 is one attempt.
func (a *Actuator) evict(ctx context.Context, pod *v1.Pod, grace, patience time.Duration, check stillOurs) error {
	until := time.Now().Add(patience)
	for {
		release, err := a.takeTurn(ctx, check)
		if err != nil {
			return err
		}
		err = a.evictOnce(ctx, pod, grace)
		release()
		if err == nil {
			a.hooks.Evicted("accepted")
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		why := refusalOf(err)
		a.hooks.Evicted(string(why))
		if why == refusedConflict && a.replaced(ctx, pod) {
			return nil
		}
		if !why.retried() {
			return &evictionError{refusal: why, last: err}
		}
		wait := jitter(a.options.EvictionRetryInterval.Duration)
		if asked, ok := apierrors.SuggestsClientDelay(err); ok {
			wait = max(wait, time.Duration(asked)*time.Second)
		}
		if !time.Now().Add(wait).Before(until) {
			return &evictionError{refusal: why, timedOut: true, last: err}
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
		if err := check(ctx); err != nil {
			return err
		}
	}
}

const (
	// evictionsAtOnce is how many evictions may wait for an answer of the API server at the same time. The other
	// requests of the process stand behind at most so many of them in its limit of requests per second.
	evictionsAtOnce = 20
	// longTurn is a wait for that after which the node may be another leader's, so that it is looked at again.
	longTurn = 5 * time.Second
)

// takeTurn waits until fewer evictions wait for an answer, and after a long wait looks again whether to evict.
func (a *Actuator) takeTurn(ctx context.Context, check stillOurs) (release func(), err error) {
	release = func() { <-a.evicting }
	select {
	case a.evicting <- struct{}{}:
		return release, nil
	default: // first of all, so that a free place is taken whatever else is ready
	}
	began := time.Now()
	select {
	case a.evicting <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if time.Since(began) > longTurn {
		err = check(ctx)
	}
	if err != nil {
		release()
	}
	return release, err
}

// evictOnce asks once. A pod that is gone already, or ends, needs no eviction.
func (a *Actuator) evictOnce(ctx context.Context, pod *v1.Pod, grace time.Duration) error {
	seconds := int64(grace / time.Second)
	err := a.nodes.client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &seconds,
			Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}, // never another pod of the same name
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// deleteDespiteBudget deletes a pod whose eviction was given up with `refused`, if the last answer was that of its
// budgets and the options allow it. Otherwise it returns that error.
func (a *Actuator) deleteDespiteBudget(ctx context.Context, pod *v1.Pod, grace time.Duration, refused error) error {
	var given *evictionError
	if !a.options.UnsafeDeletePodsDespiteDisruptionBudgets || !errors.As(refused, &given) ||
		given.refusal != refusedByBudget && given.refusal != refusedByBudgets {
		return refused
	}
	seconds := int64(grace / time.Second)
	err := a.nodes.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: &seconds,
			Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return errors.Join(refused, fmt.Errorf("nor deleted: %w", err))
	}
	klog.InfoS("Pod is deleted despite its disruption budgets", "pod", klog.KObj(pod), "node", pod.Spec.NodeName,
		"refused", refused)
	a.events.Eventf(pod, v1.EventTypeWarning, "DeletedDespiteBudget",
		"deleted for scale-down although its disruption budgets refuse it: %v", refused)
	a.hooks.Evicted(deletedDespiteBudget)
	return nil
}

// replaced says whether the pod has made way for another one of the same name, or for one on another node.
func (a *Actuator) replaced(ctx context.Context, pod *v1.Pod) bool {
	now, err := a.nodes.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true
	}
	return err == nil && (now.UID != pod.UID || now.Spec.NodeName != pod.Spec.NodeName)
}

// jitter spreads attempts that began together: by up to a fifth either way.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}
