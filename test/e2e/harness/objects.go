package harness

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// creators is how many objects are created at a time where the order does not matter.
const creators = 16

// CreateNodes creates nodes, many at a time. Their status is kept as it is: with no kubelet to report it, this is
// where allocatable comes from.
func (c *Cluster) CreateNodes(ctx context.Context, nodes []*v1.Node) error {
	return inParallel(ctx, nodes, func(ctx context.Context, node *v1.Node) error {
		_, err := c.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	})
}

// CreatePods creates pods, many at a time, in no particular order.
func (c *Cluster) CreatePods(ctx context.Context, pods []*v1.Pod) error {
	return inParallel(ctx, pods, c.createPod)
}

// CreatePodsInOrder creates pods one after another, so that a scheduler sees them arrive in this order.
func (c *Cluster) CreatePodsInOrder(ctx context.Context, pods []*v1.Pod) error {
	for _, pod := range pods {
		if err := c.createPod(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) createPod(ctx context.Context, pod *v1.Pod) error {
	_, err := c.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

func inParallel[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for _, item := range items {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(ctx, item) })
	}
	return group.Wait()
}

// Clear deletes all pods and nodes at once and waits until none is left.
func (c *Cluster) Clear(ctx context.Context) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	pods, err := c.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	namespaces := map[string]bool{}
	for _, pod := range pods.Items {
		namespaces[pod.Namespace] = true
	}
	for namespace := range namespaces {
		if err := c.Client.CoreV1().Pods(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("deleting pods of %s: %w", namespace, err)
		}
	}
	if err := c.Client.CoreV1().Nodes().DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("deleting nodes: %w", err)
	}
	return c.waitEmpty(ctx)
}

func (c *Cluster) waitEmpty(ctx context.Context) error {
	for {
		pods, err := c.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		if len(pods.Items)+len(nodes.Items) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("pods or nodes are still there: %w", ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// DeletePod deletes a pod at once and waits until it is gone. One that is not there is gone already.
func (c *Cluster) DeletePod(ctx context.Context, namespace, name string) error {
	pods := c.Client.CoreV1().Pods(namespace)
	err := pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	for err == nil {
		if _, err = pods.Get(ctx, name, metav1.GetOptions{}); err == nil {
			time.Sleep(pollInterval)
		}
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("deleting pod %s/%s: %w", namespace, name, err)
}
