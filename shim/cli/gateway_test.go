package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The gateway takes the argument that the chart gives as an example: it gets as far as the cluster.
func TestGatewayTakesTheArgumentOfTheChart(t *testing.T) {
	content, err := os.ReadFile("../../charts/loadline/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile(`(?m)^  extraArgs: .* of loadline gateway, such as (.+)$`).FindSubmatch(content)
	if example == nil {
		t.Fatal("values.yaml has no example of the gateway's extraArgs")
	}
	_, errs, code := run(t, "loadline", "", "gateway", "--extender-address", "127.0.0.1:0", "--kubeconfig",
		"testdata/no-such-file", string(example[1]))
	if code == 0 || !strings.Contains(errs, "testdata/no-such-file") {
		t.Errorf("%s: exit %d, %s", example[1], code, errs)
	}
}
