package scheduler

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func TestDecodeArgs(t *testing.T) {
	args, err := decodeArgs(nil)
	if err != nil {
		t.Fatal(err)
	}
	if args.EngineAddress != "unix:///run/loadline/loadlined.sock" || args.Timeout.Duration != 20*time.Millisecond || args.View != "scheduler" ||
		args.Preset != "strict" {
		t.Errorf("the defaults are %+v", args)
	}
	args, err = decodeArgs(&runtime.Unknown{ContentType: runtime.ContentTypeJSON, Raw: []byte(`{
		"apiVersion": "loadline.dev/v1", "kind": "NodeResourcesLimitAwareArgs",
		"engineAddress": "unix:///run/loadline/socket", "timeout": "5ms", "view": "batch",
		"preset": "kep217", "resources": [{"resource": "cpu", "weight": 2}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	if args.EngineAddress != "unix:///run/loadline/socket" || args.Timeout.Duration != 5*time.Millisecond ||
		args.View != "batch" ||
		args.Preset != "kep217" || len(args.Resources) != 1 || args.Resources[0].Weight != 2 {
		t.Errorf("got %+v", args)
	}
}

// Invariant H5.
func TestDecodeArgsRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"UnknownField", `{"engineAdress": "inprocess"}`, `unknown field "engineAdress"`},
		{"UnknownNestedField", `{"resources": [{"resource": "cpu", "weight": 1, "wait": 2}]}`,
			`unknown field "resources[0].wait"`},
		{"RepeatedField", `{"timeout": "5ms", "timeout": "6ms"}`, `"timeout" already set`},
		{"Kind", `{"kind": "NodeResourcesFitArgs"}`, `kind: Unsupported value: "NodeResourcesFitArgs"`},
		{"Group", `{"apiVersion": "v1"}`, `apiVersion: Unsupported value: "v1"`},
		{"VersionOfOurs", `{"apiVersion": "loadline.dev/v1alpha1"}`,
			`apiVersion: Unsupported value: "loadline.dev/v1alpha1": supported values: "loadline.dev/v1", "kube`},
		{"OldVersion", `{"apiVersion": "kubescheduler.config.k8s.io/v1", "engineAdress": "inprocess"}`,
			`unknown field "engineAdress"`},
		{"Version", `{"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}`,
			`apiVersion: Unsupported value: "kubescheduler.config.k8s.io/v1beta3"`},
		{"NoVersion", `{"apiVersion": "kubescheduler.config.k8s.io"}`,
			`apiVersion: Unsupported value: "kubescheduler.config.k8s.io"`},
		{"TimeoutZero", `{"timeout": "0s"}`, `timeout: Invalid value: "0s": must be 1ms to 1s`},
		{"TimeoutLong", `{"timeout": "2s"}`, `timeout: Invalid value: "2s": must be 1ms to 1s`},
		{"TimeoutWord", `{"timeout": "soon"}`, `timeout: has to be a duration such as 1m30s, and is "soon"`},
		{"View", `{"view": "Big View"}`, `view: Invalid value: "Big View"`},
		{"Weight", `{"resources": [{"resource": "cpu", "weight": 0}]}`, `resources[0].weight: Invalid value: 0`},
		{"Truncated", `{"view": "`, `NodeResourcesLimitAwareArgs: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decodeArgs(&runtime.Unknown{Raw: []byte(c.text)})
			if err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.HasPrefix(err.Error(), "NodeResourcesLimitAwareArgs: ") {
				t.Errorf("got error %v, want %q in it", err, c.want)
			}
		})
	}
	if _, err := decodeArgs(&v1.Pod{}); err == nil || !strings.Contains(err.Error(), "cannot be read from a *v1.Pod") {
		t.Errorf("got error %v", err)
	}
	if _, err := decodeArgs(&runtime.Unknown{ContentType: runtime.ContentTypeYAML}); err == nil ||
		!strings.Contains(err.Error(), "must be JSON") {
		t.Errorf("got error %v", err)
	}
}

// The plugin takes the arguments that the chart gives as an example.
func TestDecodeArgsOfTheChart(t *testing.T) {
	content, err := os.ReadFile("../../charts/loadline/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile(`(?m)^  pluginArgs: .* such as (.+)$`).FindSubmatch(content)
	if example == nil {
		t.Fatal("values.yaml has no example of pluginArgs")
	}
	raw, err := yaml.YAMLToJSON(example[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeArgs(&runtime.Unknown{Raw: raw}); err != nil {
		t.Errorf("%s: %v", example[1], err)
	}
}
