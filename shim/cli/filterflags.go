package cli

import (
	"context"

	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/filterconfig"
)

// filterFlags say how the filters of the cluster's scheduler are configured, for commands that ask of the settings
// nothing else.
type filterFlags struct{ config.Filters }

func (f *filterFlags) addTo(flags *pflag.FlagSet) {
	config.AddFlagsTo(flags, &f.Filters)
	acceptFormerNames(flags)
}

// scheduler returns how the cluster's scheduler is configured.
func (f *filterFlags) scheduler(ctx context.Context) (*filterconfig.Scheduler, error) {
	scheduler, err := f.Scheduler()
	if err != nil {
		return nil, usageError{config.AsFlag(&f.Filters, err)}
	}
	warnBeside(ctx, scheduler.Warnings...)
	return scheduler, nil
}

// fit returns what filters read of it; nil: as kube-scheduler's defaults.
func (f *filterFlags) fit(ctx context.Context) (*loadlinev1.FitOptions, error) {
	scheduler, err := f.scheduler(ctx)
	if err != nil {
		return nil, err
	}
	return scheduler.Fit, nil
}

// selectors returns what deduces selectors from the objects of a cluster; nil: nobody needs any.
func selectors(fit *loadlinev1.FitOptions) *filterconfig.Selectors {
	if filterconfig.NeedsSelectors(fit) {
		return &filterconfig.Selectors{}
	}
	return nil
}

// selectorKinds are the kinds that it gets.
var selectorKinds = []string{"Service", "ReplicationController", "ReplicaSet", "StatefulSet"}
