package act

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/act/placeholders"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/tell"
	"loadline.dev/shim/slack"
)

// keepTime bounds what bringing the objects that keep slack into line takes in one loop.
const keepTime = 15 * time.Second

// keeper keeps slack by objects.
type keeper interface {
	Keep(ctx context.Context, shapes []slack.Shape) error
}

// KeeperOf returns what keeps slack as a configuration says; nil: nothing does.
func KeeperOf(c *config.Configuration, objects dynamic.Interface) keeper {
	switch {
	case c.Mode != config.Act || !c.Decides(config.SlackDecision):
		return nil
	case c.Slack.Keep == config.SlackDeployments:
		return placeholders.Deployments(objects, c.Slack.Namespace)
	case c.Slack.Keep == config.SlackCapacityBuffers:
		return placeholders.CapacityBuffers(objects, c.Slack.Namespace)
	}
	return nil
}

// keepSlack has objects keep the slack of a plan.
func (a *Actor) keepSlack(ctx context.Context, o *plan.Loop) error {
	if a.Keeper == nil {
		return nil
	}
	defer a.teller.Metrics.Time(tell.FunctionSlack)()
	ctx, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	known := slack.NewGatherer()
	for _, object := range a.cluster.Asking {
		if pod, ok := object.(*v1.Pod); ok {
			known.AddPod(pod)
		} else {
			known.AddObject(object)
		}
	}
	shapes, warnings := known.Shapes(o.Plan.Answer.GetSlack(), a.config.Slack.Namespace)
	for _, warning := range warnings {
		klog.InfoS("Slack: " + warning)
	}
	return a.Keeper.Keep(ctx, shapes)
}
