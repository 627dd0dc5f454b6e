package autoscaler

import (
	"time"

	"k8s.io/client-go/kubernetes"

	"loadline.dev/shim/autoscaler/act"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/tell"
	"loadline.dev/shim/autoscaler/watch"
)

// leader does the work of the one process that leads, loop by loop.
type leader struct {
	config    *config.Configuration
	cluster   *watch.Cluster
	cloud     cloud.Provider
	models    *cloud.Models
	planner   *plan.Planner
	actor     *act.Actor
	teller    *tell.Teller
	clock     *planClock
	files     reloader
	batchWait time.Duration // for how long growth waits for further pods, by the last plan
}

func newLeader(p *plan.Planner, t *tell.Teller, client kubernetes.Interface, asked cloud.Provider,
	clock Clock) *leader {
	plans := newPlanClock(clock)
	return &leader{config: p.Config, cluster: p.Cluster, cloud: asked, models: cloud.NewModels(asked), planner: p,
		actor: act.New(p, t, client, asked, plans.now), teller: t, clock: plans}
}
