package cli

import (
	"context"
	"io"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
)

// asking says what an autoscaler would be asked for.
type asking struct {
	source *sourceFlags
	engine engineFlags
	// settings are those of the autoscaler, with the decisions that are asked for, and loaded the files that they name.
	settings config.Configuration
	loaded   *config.Loaded
	groups   string // the file with node groups
	// mayLackPods says that a dump without any pod is no error.
	mayLackPods bool
	load        loadOptions
}

// question is what an autoscaler would ask, and the cluster that it asks about. Whoever gets it closes it.
type question struct {
	*cluster
	planner *plan.Planner
	loop    *plan.Loop
}

// gather reads what the question is made of, and gathers it.
func (a *asking) gather(ctx context.Context, stdin io.Reader) (*question, error) {
	file, err := loadGroups(a.groups)
	if err != nil {
		return nil, err
	}
	q := &question{}
	a.load.planning, a.load.fit, a.load.watch = true, a.loaded.Fit, &a.settings
	if q.cluster, err = load(ctx, a.source, a.engine, stdin, a.load); err != nil {
		return nil, err
	}
	if err = q.withoutPods(a.source, a.mayLackPods); err == nil {
		q.planner, q.loop, err = q.cluster.gather(&a.settings, a.loaded, file, nil)
	}
	if err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}
