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

// CreateNodes creates nodes, many at a time. Their status is kept as it is: with no kubelet to report it, this is the
// source of allocatable.
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
