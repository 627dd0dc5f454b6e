package simcloud

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fail makes a method answer with an error; nil: it answers normally again.
func (c *Cloud) Fail(method string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail[method] = err
}

// Hang makes a method hang, or answer again.
func (c *Cloud) Hang(method string, hangs bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hang[method] = hangs
}

// Replace puts another machine in the place of the one of a node, as a cloud that repairs itself does: the Node object
// is deleted, and one of the same name is created, with another UID and provider id, and with these annotations. Pods
// stay bound to the name.
func (c *Cloud) Replace(ctx context.Context, name string, annotations map[string]string) (*v1.Node, error) {
	old, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if err := c.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	c.mu.Lock()
	g := c.groups[old.Labels[GroupLabel]]
	g.replaced++
	id := fmt.Sprintf("%s/replaced-%d", old.Spec.ProviderID, g.replaced)
	g.machines[id] = g.machines[old.Spec.ProviderID]
	delete(g.machines, old.Spec.ProviderID)
	node := g.node(name, id)
	c.mu.Unlock()
	node.Annotations = annotations
	return c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
}

// Delay changes how long new machines take to become nodes.
func (c *Cloud) Delay(create time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.options.CreateDelay = create
}

// Change changes a group, such as its faults.
func (c *Cloud) Change(id string, change func(*Group)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.groups[id].Group)
}
