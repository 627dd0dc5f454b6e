package cli

import (
	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/filterconfig"
)

// The treatments of a pod under a load line when the engine does not answer.
const (
	refuseOnFailure = "Refuse"
	allowOnFailure  = "Allow"
)

// lineFlags say what the limits of the pods of a node may add up to.
type lineFlags struct {
	entries []string
	prefix  string
	exempt  []string
}

func (f *lineFlags) addTo(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.entries, "max-limits-over-allocatable", nil, "load line, such as cpu=3,memory=1.5: "+
		"a node takes no pod that would lift the limits of its pods above it (default: that of our plugin in "+
		"--scheduler-config, else none)")
	flags.StringVar(&f.prefix, "line-node-label-prefix", "",
		"with a load line: a node with the label PREFIX/memory has that line for memory")
	flags.StringSliceVar(&f.exempt, "line-exempt-namespaces", nil,
		"with a load line: namespaces whose pods go where they want, and count for others")
}

// onto puts the load line of the flags in place of that of the options, if there is one.
func (f *lineFlags) onto(options *loadlinev1.FitOptions) (*loadlinev1.FitOptions, error) {
	return filterconfig.WithLine(options, f.entries, f.prefix, f.exempt)
}
