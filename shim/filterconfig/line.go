package filterconfig

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"

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

// readLine takes the load line, and how limits are counted under it, out of the arguments of our plugin; nil: none.
// Errors continue the path of the arguments.
func readLine(data []byte) (*loadlinev1.LoadLine, error) {
	var args lineArguments
	if len(data) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(data, &args); err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	if !args.On() {
		return nil, nil
	}
	args.Policy.Default()
	if err := append(args.Policy.ValidateAt(nil), args.Line.ValidateAt(nil)...).ToAggregate(); err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	if err := args.CheckCounting(args.Policy); err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	return args.Line.Proto(args.Policy.Proto()), nil
}

// addLine has the line of one profile hold for the pods of all: no plan lifts a node above it. Two profiles with
// different lines are refused, since a node has one.
func (s *Scheduler) addLine(line *loadlinev1.LoadLine) error {
	if line == nil {
		return nil
	}
	if have := s.Fit.GetLoadLine(); have != nil && !proto.Equal(have, line) {
		return fmt.Errorf("pluginConfig of %s: the load line differs from that of another profile", linePlugin)
	}
	s.options().LoadLine = line
	return nil
}

// WithLine returns the options with a load line in place of theirs, if it is on; limits are counted as theirs says.
func WithLine(options *loadlinev1.FitOptions, entries []string, labelPrefix string,
	exempt []string) (*loadlinev1.FitOptions, error) {
	line, err := policy.ReadLine(entries, labelPrefix, exempt)
	if err != nil {
		return nil, err
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
