package cli

import (
	"strings"
	"testing"
)

// A value that an engine in this process does not take is that of a flag.
func TestErrorsOfTheEngineNameFlags(t *testing.T) {
	for flag, want := range map[string]string{"--max-question-bytes=-5": "error: --max-question-bytes: -5 is less than ",
		"--slack-namespace=\x01": "error: --slack-namespace: "} {
		_, errs, code := run(t, "loadline", "", "top", "-f", "testdata/plan.yaml", flag)
		if code != 2 || !strings.HasPrefix(errs, want) {
			t.Errorf("%s: exit %d, %s", flag, code, errs)
		}
	}
}

// Flags of commands without a configuration are named as well.
func TestErrorsOfFiltersNameFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"--kubernetes-version=1.12":         `error: --kubernetes-version: "1.12" must be one of 1.36, 1.37`,
		"--max-limits-over-allocatable=cpu": `error: --max-limits-over-allocatable: "cpu" must be RESOURCE=RATIO`,
		"--lines=1 --startup-taint=a/b/c":   `error: --startup-taint: "a/b/c" is not the key of a taint: `,
		"--lines=0":                         "error: --lines 0: maxLimitsOverAllocatable[memory]: ",
	} {
		_, errs, code := run(t, "loadline", "",
			append([]string{"top", "-f", "testdata/plan.yaml"}, strings.Fields(flags)...)...)
		if code != 2 || !strings.HasPrefix(errs, want) {
			t.Errorf("%s: exit %d, %s", flags, code, errs)
		}
	}
}
