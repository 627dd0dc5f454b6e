package generateload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// tick is between two steps of pods to come, and between two looks at them.
const tick = time.Second

// Generator makes and removes one load. Report takes a line of progress.
type Generator struct {
	Client  kubernetes.Interface
	Options Options
	Report  func(line string)
}

// Make makes the load. What is there already under its names is brought to the same state if it is of this load, and an
// error if it is not.
func (g *Generator) Make(ctx context.Context) error {
	for _, budget := range g.Options.budgets() {
		budgets := g.Client.PolicyV1().PodDisruptionBudgets(budget.Namespace)
		_, err := budgets.Create(ctx, budget, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = g.changeBudget(ctx, budget)
		}
		if err != nil {
			return err
		}
	}
	arrived, began := 0, time.Now()
	var pods []*v1.Pod
	var deployments []*appsv1.Deployment
	if g.Options.Bare {
		pods = g.Options.pods()
	} else {
		deployments = g.Options.deployments()
	}
	for {
		due := g.Options.Pods
		if past := time.Since(began); past < g.Options.Over {
			due = 1 + int(int64(g.Options.Pods-1)*int64(past)/int64(g.Options.Over))
		}
		if due > arrived {
			if err := errors.Join(g.createPods(ctx, pods[min(arrived, len(pods)):min(due, len(pods))]),
				g.scale(ctx, deployments, arrived, due)); err != nil {
				return err
			}
			arrived = due
			g.Report(fmt.Sprintf("%d of %d pods asked for", arrived, g.Options.Pods))
		}
		if arrived == g.Options.Pods {
			return nil
		}
		if err := sleep(ctx, min(tick, g.Options.Over-time.Since(began))); err != nil {
			return err
		}
	}
}

// changeBudget has a budget that is there allow what is wanted.
func (g *Generator) changeBudget(ctx context.Context, wanted *policyv1.PodDisruptionBudget) error {
	budgets := g.Client.PolicyV1().PodDisruptionBudgets(wanted.Namespace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		there, err := budgets.Get(ctx, wanted.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := g.ours(there); err != nil {
			return err
		}
		there.Spec.MaxUnavailable = wanted.Spec.MaxUnavailable
		_, err = budgets.Update(ctx, there, metav1.UpdateOptions{})
		return err
	})
}

func (g *Generator) createPods(ctx context.Context, wanted []*v1.Pod) error {
	for _, pod := range wanted {
		pods := g.Client.CoreV1().Pods(pod.Namespace)
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			var there *v1.Pod
			if there, err = pods.Get(ctx, pod.Name, metav1.GetOptions{}); err == nil {
				err = g.ours(there)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// scale has pods number `from` to `to` come, of as many Deployments as they belong to in turn.
func (g *Generator) scale(ctx context.Context, deployments []*appsv1.Deployment, from, to int) error {
	n := len(deployments)
	for i, deployment := range deployments {
		// Pod k belongs to Deployment k modulo n, which so gets the replicas that it is to have.
		before, after := (from+n-1-i)/n, (to+n-1-i)/n
		if after == before {
			continue
		}
		deployment.Spec.Replicas = new(int32(after))
		if err := g.put(ctx, deployment); err != nil {
			return err
		}
	}
	return nil
}

func (g *Generator) put(ctx context.Context, wanted *appsv1.Deployment) error {
	deployments := g.Client.AppsV1().Deployments(wanted.Namespace)
	_, err := deployments.Create(ctx, wanted, metav1.CreateOptions{})
	for try := 0; try < 5 && (apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err)); try++ {
		there, getErr := deployments.Get(ctx, wanted.Name, metav1.GetOptions{})
		if getErr != nil {
			return getErr
		}
		if err := g.ours(there); err != nil {
			return err
		}
		there.Spec.Replicas, there.Spec.Template = wanted.Spec.Replicas, wanted.Spec.Template
		there.Annotations = wanted.Annotations
		_, err = deployments.Update(ctx, there, metav1.UpdateOptions{})
	}
	return err
}

// ours is an error where an object is not of this load.
func (g *Generator) ours(object metav1.Object) error {
	if object != nil && object.GetLabels()[LoadLabel] != g.Options.Name {
		return fmt.Errorf("%s/%s is there and not of load %s: choose another name",
			object.GetNamespace(), object.GetName(), g.Options.Name)
	}
	return nil
}

// Wait waits until all pods run that are asked for, and tells how long they waited for a node. Pods of Deployments, and
// bare ones, that an earlier call has made beside these are not counted.
func (g *Generator) Wait(ctx context.Context) error {
	wanted := map[string]bool{}
	if g.Options.Bare {
		for _, pod := range g.Options.pods() {
			wanted[pod.Name] = true
		}
	} else {
		for _, deployment := range g.Options.deployments() {
			wanted[deployment.Name] = true
		}
	}
	return g.watch(ctx, func(pod *v1.Pod) bool { return wanted[cmp.Or(pod.Labels[PartLabel], pod.Name)] },
		func(p progress) bool { return p.running == g.Options.Pods && p.ending == 0 })
}

// Remove takes away what Make has made, and waits until its pods are gone.
func (g *Generator) Remove(ctx context.Context) error {
	selected, namespace := metav1.ListOptions{LabelSelector: g.Options.Selector()}, g.Options.Namespace
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	// Pods of Deployments are deleted behind these: who deletes them first has them made again.
	bare := metav1.ListOptions{LabelSelector: g.Options.Selector() + ",!" + PartLabel}
	err := errors.Join(
		g.Client.AppsV1().Deployments(namespace).DeleteCollection(ctx, background, selected),
		g.Client.CoreV1().Pods(namespace).DeleteCollection(ctx, background, bare),
		g.Client.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection(ctx, background, selected))
	if err != nil {
		return err
	}
	return g.watch(ctx, func(*v1.Pod) bool { return true }, func(p progress) bool { return p.total == 0 })
}

// progress counts the pods of a load.
type progress struct {
	total, waiting, starting, running, ending int
	waits                                     []time.Duration // of those with a node: until they had it; ascending
}

func (p progress) String() string {
	text := fmt.Sprintf("%d pods: %d running, %d starting, %d waiting for a node, %d ending", p.total, p.running,
		p.starting, p.waiting, p.ending)
	if n := len(p.waits); n > 0 {
		text += fmt.Sprintf("; had a node after %v in the median, %v at the latest", p.waits[(n-1)/2], p.waits[n-1])
	}
	return text
}

// watch reports what changes with the pods that count, until something holds.
func (g *Generator) watch(ctx context.Context, counts func(*v1.Pod) bool, holds func(progress) bool) error {
	last := ""
	for {
		p, err := g.look(ctx, counts)
		if err != nil {
			return err
		}
		if text := p.String(); text != last {
			g.Report(text)
			last = text
		}
		if holds(p) {
			return nil
		}
		if err := sleep(ctx, tick); err != nil {
			return fmt.Errorf("%s: %w", last, err)
		}
	}
}

func (g *Generator) look(ctx context.Context, counts func(*v1.Pod) bool) (p progress, err error) {
	options := metav1.ListOptions{LabelSelector: g.Options.Selector(), Limit: 1000}
	for {
		list, err := g.Client.CoreV1().Pods(g.Options.Namespace).List(ctx, options)
		if err != nil {
			return p, err
		}
		for i := range list.Items {
			if pod := &list.Items[i]; counts(pod) {
				p.add(pod)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			slices.Sort(p.waits)
			return p, nil
		}
	}
}

func (p *progress) add(pod *v1.Pod) {
	p.total++
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			p.waits = append(p.waits, max(0, c.LastTransitionTime.Sub(pod.CreationTimestamp.Time)))
		}
	}
	switch {
	case pod.DeletionTimestamp != nil:
		p.ending++
	case pod.Spec.NodeName == "":
		p.waiting++
	case pod.Status.Phase == v1.PodRunning:
		p.running++
	default:
		p.starting++
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(max(d, 0)):
		return nil
	}
}
