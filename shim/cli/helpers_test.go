package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
)

// addPolicyFlagsTo returns the policy flags of a command line.
func addPolicyFlagsTo(t *testing.T, args string) *policyFlags {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags := addPolicyFlags(set)
	if err := set.Parse(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	return flags
}

func viewsOf(t *testing.T, daemon *enginetest.Daemon) []string {
	t.Helper()
	response, err := loadlinev1.NewClusterStateClient(daemon.Open()).Describe(t.Context(),
		&loadlinev1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, view := range response.GetViews() {
		names = append(names, view.GetName())
	}
	return names
}
