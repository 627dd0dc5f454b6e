package cli

import (
	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/filterconfig"
)

// filterFlags say how the filters of the cluster's scheduler are configured.
type filterFlags struct {
	schedulerConfig string
	defects         []string
	line            lineFlags
}

func (f *filterFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.schedulerConfig, "scheduler-config", "", "file with a KubeSchedulerConfiguration: arguments "+
		"of NodeAffinity, PodTopologySpread and NodeResourcesFit in its first profile hold here too")
	flags.StringSliceVar(&f.defects, "upstream-defects", nil,
		"known defects of kube-scheduler to be reproduced: "+filterconfig.NamespaceSelectorSeesNoLabels)
	f.line.addTo(flags)
}

// fit returns them as the engine has them; nil: as kube-scheduler's defaults.
func (f *filterFlags) fit() (*loadlinev1.FitOptions, error) {
	options, err := filterconfig.Options(f.schedulerConfig, f.defects)
	if err != nil {
		return nil, usageError{err}
	}
	if options, err = f.line.onto(options); err != nil {
		return nil, usageError{err}
	}
	return options, nil
}
