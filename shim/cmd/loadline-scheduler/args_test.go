package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	configv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"

	"loadline.dev/shim/internal/testing/enginetest"
)

// withArgs is a configuration with typed arguments of the plugin.
const withArgs = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: NodeResourcesLimitAware}]}}
  pluginConfig:
  - name: NodeResourcesLimitAware
    args: {apiVersion: %s, kind: NodeResourcesLimitAwareArgs, engineAddress: %q, view: batch}
`

// kube-scheduler loads arguments of any group, hands them to the plugin and writes them as they are. The plugin takes
// its own group and, for one minor version, the older one.
func TestArgsOfOurGroup(t *testing.T) {
	for version, refused := range map[string]string{
		"loadline.dev/v1":                     "",
		"kubescheduler.config.k8s.io/v1":      "",
		"loadline.dev/v1alpha1":               `apiVersion: Unsupported value: "loadline.dev/v1alpha1"`,
		"kubescheduler.config.k8s.io/v1beta3": `apiVersion: Unsupported value: "kubescheduler.config.k8s.io/v1beta3"`,
	} {
		text := fmt.Sprintf(withArgs, version, enginetest.Address(t))
		_, err := newProfilesOn(t, text, cache.NewEmptySnapshot())
		if refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), refused)) {
			t.Errorf("%s: error %v, want %q", version, err, refused)
		}
		written := rewritten(t, text)
		if !strings.Contains(written, "apiVersion: "+version+"\n") || !strings.Contains(written, "view: batch") {
			t.Errorf("%s is written as %s", version, written)
		}
	}
}

// rewritten returns a configuration as kube-scheduler writes it with --write-config-to.
func rewritten(t *testing.T, text string) string {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := options.LoadConfigFromFile(klog.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	yaml, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeYAML)
	var out bytes.Buffer
	if err := scheme.Codecs.EncoderForVersion(yaml.Serializer, configv1.SchemeGroupVersion).Encode(loaded,
		&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
