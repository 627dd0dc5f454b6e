package drain

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/text"
)

// evictAll evicts pods, all at once, and returns the answers in the order of the orders.
func (a *Actuator) evictAll(ctx context.Context, d *deletion,
	orders []*loadlinev1.EvictionOrder) []*loadlinev1.EvictionAnswer {
	answers := make([]*loadlinev1.EvictionAnswer, len(orders))
	var all sync.WaitGroup
	for i, order := range orders {
		all.Go(func() {
			pod := d.seen[order.Uid]
			if pod == nil { // it is in no list any more, and the engine has not seen the last ones
				answers[i] = &loadlinev1.EvictionAnswer{Uid: order.Uid, Code: http.StatusNotFound}
				return
			}
			err := a.evict(ctx, d, pod, order)
			if (err == nil || apierrors.IsNotFound(err)) && !order.BestEffort {
				a.mu.Lock()
				a.evictions = append(a.evictions, Eviction{Pod: pod, At: a.options.Now()})
				a.mu.Unlock()
			}
			answers[i] = answerOf(order.Uid, err)
		})
	}
	all.Wait()
	for _, answer := range answers {
		if answer.Cause == loadlinev1.EvictionAnswer_BUDGET || answer.Code == 500 {
			d.refused[answer.Uid] = answer.Error
		}
	}
	return answers
}

// evict asks once for what was ordered about a pod.
func (a *Actuator) evict(ctx context.Context, d *deletion, pod *v1.Pod, order *loadlinev1.EvictionOrder) error {
	release, err := a.takeTurn(ctx, d)
	if err != nil {
		return err
	}
	defer release()
	if order.First {
		a.events.Event(pod, v1.EventTypeNormal, "ScaleDown", "deleting pod for node scale down")
	}
	options := metav1.DeleteOptions{GracePeriodSeconds: &order.GraceSeconds,
		Preconditions: metav1.NewUIDPreconditions(order.Uid)} // never another pod of the same name
	if !order.DespiteBudget {
		return a.nodes.client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &options})
	}
	if err = a.nodes.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options); err == nil {
		klog.InfoS("Pod is deleted despite its disruption budgets", "pod", klog.KObj(pod), "node", d.Node.Name)
		a.events.Event(pod, v1.EventTypeWarning, "DeletedDespiteBudget",
			"deleted for scale-down although its disruption budgets refuse it: "+d.refused[order.Uid])
	}
	return err
}

const (
	// evictionsAtOnce is how many evictions may wait for an answer of the API server at the same time. The other
	// requests of the process stand behind at most so many of them in its limit of requests per second.
	evictionsAtOnce = 20
	// longTurn is a wait for that after which the node may be another leader's, so that it is looked at again.
	longTurn = 5 * time.Second
)

// takeTurn waits until fewer evictions wait for an answer, and after a long wait looks again whether the node is ours.
func (a *Actuator) takeTurn(ctx context.Context, d *deletion) (release func(), err error) {
	began := time.Now()
	select {
	case a.evicting <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release = func() { <-a.evicting }
	if time.Since(began) > longTurn {
		_, err = a.nodes.confirm(ctx, d.Node)
	}
	if errors.Is(err, errNodeGone) || errors.Is(err, errNotOurs) { // the eviction meets all other errors too
		release()
		return nil, err
	}
	return release, nil
}

// answerOf tells what the API server has answered about a pod.
func answerOf(uid string, err error) *loadlinev1.EvictionAnswer {
	answer := &loadlinev1.EvictionAnswer{Uid: uid}
	if err == nil {
		answer.Code = 200
		return answer
	}
	answer.Error = text.Bound(err.Error(), 1<<8) // a node may have thousands of pods
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		answer.Code = status.Status().Code
	}
	if apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		answer.Cause = loadlinev1.EvictionAnswer_BUDGET
	}
	if apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
		answer.Cause = loadlinev1.EvictionAnswer_NAMESPACE_ENDS
	}
	if wait, asked := apierrors.SuggestsClientDelay(err); asked {
		answer.RetryAfterSeconds = int64(max(wait, 0))
	}
	return answer
}
