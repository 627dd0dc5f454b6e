package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loadline.dev/shim/autoscaler/config"
)

func runAutoscaler(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	return runAs(t, append([]string{"loadline", "autoscaler"}, args...)...)
}

// runAs runs a whole command line, of which the first word is the name of the program.
func runAs(t *testing.T, line ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), line, Streams{Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

// The output without any option is a file that can be given.
func TestAutoscalerWritesItsConfiguration(t *testing.T) {
	code, out, errs := runAutoscaler(t, "--write-config-to=-", "--max-drain-parallelism=3")
	if code != exitOK {
		t.Fatal(code, errs)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	if err := c.Load(file); err != nil || c.ScaleDown.MaxDrainParallelism != 3 || c.Mode != config.Observe {
		t.Errorf("read %+v, error %v", c, err)
	}
	if code, again, errs := runAutoscaler(t, "--config="+file, "--write-config-to=-"); code != exitOK || again != out {
		t.Errorf("written again: %s, exit code %d, %s", again, code, errs)
	}
}

func TestAutoscalerUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"cloudProvider.address (--cloud-address) is required": {},
		"mode \"now\": must be":                               {"--mode=now"},
		"decisions: \"scale\" must be":                        {"--decisions=scale"},
		"unknown flag":                                        {"--force"},
		"Unsupported log format":                              {"--logging-format=xml", "--cloud-address=unix:///x"},
	} {
		if code, _, errs := runAutoscaler(t, args...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d, %s, want %q in it", args, code, errs, want)
		}
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	content := "apiVersion: loadline.dev/v1alpha1\nkind: AutoscalerConfiguration\ncloudProvider: {kind: externalgrpc}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := runAutoscaler(t, "--config="+file, "--decisions=slack")
	if code != exitUsage || !strings.Contains(errs, "cloudProvider.address") {
		t.Errorf("a file that names a kind without an address: exit code %d, %s", code, errs)
	}
}
