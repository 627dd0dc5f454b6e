package cli

import (
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/filterconfig"
)

// filterFlags say how the filters of the cluster's scheduler are configured.
type filterFlags struct {
	schedulerConfig string
	defects         []string
	version         string
	line            lineFlags
}

func (f *filterFlags) addTo(flags *pflag.FlagSet) {
	const file = "file with the scheduler's KubeSchedulerConfiguration: its profiles, each for the pods that name it, " +
		"hold here too"
	flags.StringVar(&f.schedulerConfig, "scheduler-config-file", "", file)
	flags.StringVar(&f.schedulerConfig, "scheduler-config", "", file)
	_ = flags.MarkHidden("scheduler-config") // its former name
	flags.StringSliceVar(&f.defects, "upstream-defects", nil, "known defects of kube-scheduler that are reproduced, by "+
		"default those that its release has: "+filterconfig.NamespaceSelectorSeesNoLabels+", or "+
		filterconfig.NoDefects+" for answers as documented")
	flags.StringVar(&f.version, "kubernetes-version", "", "release whose kube-scheduler is meant: 1.36, the default, or "+
		"1.37; left out, pods that are being resized count as in the release of a live cluster's API server")
	f.line.addTo(flags)
}

// scheduler returns how the cluster's scheduler is configured.
func (f *filterFlags) scheduler() (*filterconfig.Scheduler, error) {
	scheduler, err := filterconfig.Read(filterconfig.Request{File: f.schedulerConfig, Defects: f.defects,
		Version: f.version})
	if err != nil {
		return nil, usageError{err}
	}
	if scheduler.Fit, err = f.line.onto(scheduler.Fit); err != nil {
		return nil, usageError{err}
	}
	for _, warning := range scheduler.Warnings {
		klog.Warningf("%s: %s", f.schedulerConfig, warning)
	}
	return scheduler, nil
}

// fit returns what filters read of it; nil: as kube-scheduler's defaults.
func (f *filterFlags) fit() (*loadlinev1.FitOptions, error) {
	scheduler, err := f.scheduler()
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
