package autoscaler

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/internal/text"
	"loadline.dev/shim/ranking"
)

// upstreamPriorities is the ConfigMap of Cluster Autoscaler's priority expander, with priorities and patterns of node
// groups under the key of the same name.
const (
	upstreamPriorities = "cluster-autoscaler-priority-expander"
	prioritiesKey      = "priorities"
)

// followEvery is how often it is read. Chosen: a change counts after a few loops.
const followEvery = 30 * time.Second

// priorities has plans follow Cluster Autoscaler's ConfigMap of priorities.
type priorities struct {
	client    kubernetes.Interface
	namespace string
	read      time.Time // when it was read last
	content   string    // what was read
	problem   string    // why it cannot be followed; empty: it is
}

// newPriorities returns nil where no strategy reads priorities, or a file states them.
func newPriorities(c *config.Configuration, client kubernetes.Interface) *priorities {
	if !c.ScaleUp.FollowsPriorities() {
		return nil
	}
	return &priorities{client: client, namespace: c.Namespace}
}

// follow reads the ConfigMap, unless that was done a short time ago. Where it cannot be read, what it said before
// holds, and the status warns.
func (p *priorities) follow(ctx context.Context, planner *plan.Planner, o *plan.Loop) {
	if p == nil {
		return
	}
	if p.read.IsZero() || o.Now.Sub(p.read) >= followEvery {
		p.read, p.problem = o.Now, ""
		if err := p.look(ctx, planner); err != nil {
			p.problem = text.Bound(fmt.Sprintf("ConfigMap %s/%s is not followed: %v. What it said before holds; without "+
				"priorities all node groups are equal for the strategy priority", p.namespace, upstreamPriorities, err),
				plan.MostStatusText)
		}
	}
	if p.problem != "" {
		o.Warnings = append(o.Warnings, p.problem)
	}
}

func (p *priorities) look(ctx context.Context, planner *plan.Planner) error {
	object, err := p.client.CoreV1().ConfigMaps(p.namespace).Get(ctx, upstreamPriorities, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("apply manifests/autoscaler/10-rbac.yaml, which allows to read it: %w", err)
	case err != nil:
		return err
	}
	content, has := object.Data[prioritiesKey]
	if !has {
		return fmt.Errorf("it has no key %q", prioritiesKey)
	}
	if content == p.content {
		return nil
	}
	patterns := map[int64][]string{}
	if err := yaml.UnmarshalStrict([]byte(content), &patterns); err != nil {
		return fmt.Errorf("key %q must map priorities to lists of patterns: %w", prioritiesKey, err)
	}
	followed, err := ranking.PrioritiesOf(patterns)
	if err != nil {
		return err
	}
	p.content = content
	planner.Prioritize(followed)
	klog.InfoS("Plans follow the priorities of Cluster Autoscaler's ConfigMap", "priorities", len(patterns))
	return nil
}
