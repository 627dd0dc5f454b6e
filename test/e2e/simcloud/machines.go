package simcloud

import (
	"errors"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"loadline.dev/shim/api/externalgrpc"
)

// GroupLabel is on all nodes of a group.
const GroupLabel = "simcloud/group"

func (g *group) labelled() *v1.Node {
	node := g.Template.DeepCopy()
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[GroupLabel] = g.ID
	return node
}

// node returns a node of the group that is ready.
func (g *group) node(name, providerID string) *v1.Node {
	node := g.labelled()
	node.Name = name
	node.Spec.ProviderID = providerID
	node.Labels[v1.LabelHostname] = name
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return node
}

func providerID(group, node string) string { return "sim://" + group + "/" + node }

// patience is for how long an API server may be away.
const patience = time.Minute

// isAway says whether an error means that the API server is away.
func isAway(err error) bool {
	var answer apierrors.APIStatus
	return err != nil && !errors.As(err, &answer) || apierrors.IsForbidden(err) || apierrors.IsServiceUnavailable(err)
}

// later does something in the background. The caller holds mu.
func (c *Cloud) later(delay time.Duration, do func() error) {
	c.work.Go(func() {
		select {
		case <-time.After(delay):
		case <-c.ctx.Done():
			return
		}
		err := do()
		for end := time.Now().Add(patience); isAway(err) && c.ctx.Err() == nil && time.Now().Before(end); err = do() {
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil && c.ctx.Err() == nil {
			c.mu.Lock()
			c.errs = append(c.errs, err)
			c.mu.Unlock()
		}
	})
}

func (c *Cloud) create(g *group, m *machine) error {
	if _, err := c.client.CoreV1().Nodes().Create(c.ctx, g.node(m.node, providerID(g.ID, m.node)),
		metav1.CreateOptions{}); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.state == externalgrpc.InstanceState_INSTANCE_CREATING {
		m.state = externalgrpc.InstanceState_INSTANCE_RUNNING
	}
	return nil
}

func (c *Cloud) delete(g *group, m *machine) error {
	pods, err := c.client.CoreV1().Pods(metav1.NamespaceAll).List(c.ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", m.node).String()})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		err := c.client.CoreV1().Pods(pod.Namespace).Delete(c.ctx, pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if err := c.client.CoreV1().Nodes().Delete(c.ctx, m.node, metav1.DeleteOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(g.machines, func(_ string, other *machine) bool { return other == m })
	c.deleted = append(c.deleted, Deleted{Node: m.node, Pods: pods.Items})
	return nil
}
