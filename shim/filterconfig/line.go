package filterconfig

import (
	"encoding/json"
	"fmt"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/policy"
)

// linePlugin is the name of our plugin, whose load line holds for plans too.
const linePlugin = "NodeResourcesLimitAware"

// lineArguments are what is read of its arguments.
type lineArguments struct {
	policy.Policy
	policy.Line
}

// addLine takes the load line, and how limits are counted under it, out of the arguments of our plugin.
func addLine(options *loadlinev1.FitOptions, data []byte) error {
	var args lineArguments
	if err := json.Unmarshal(data, &args); err != nil {
		return err
	}
	if !args.On() {
		return nil
	}
	args.Policy.Default()
	if err := append(args.Policy.ValidateAt(nil), args.Line.ValidateAt(nil)...).ToAggregate(); err != nil {
		return err
	}
	if err := args.CheckCounting(args.Policy); err != nil {
		return err
	}
	options.LoadLine = args.Line.Proto(args.Policy.Proto())
	return nil
}

// WithLine returns the options with a load line in place of theirs, if it is on; limits are counted as theirs says.
func WithLine(options *loadlinev1.FitOptions, entries []string, labelPrefix string,
	exempt []string) (*loadlinev1.FitOptions, error) {
	line, err := policy.ReadLine(entries, labelPrefix, exempt)
	if err != nil {
		return nil, fmt.Errorf("load line: %w", err)
	}
	if !line.On() {
		return options, nil
	}
	if options == nil {
		options = &loadlinev1.FitOptions{}
	}
	options.LoadLine = line.Proto(options.GetLoadLine().GetCounting())
	return options, nil
}
