package dump

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The pod of a manifest names what makes it as its controller.
func TestPodsOfManifestsNameTheirController(t *testing.T) {
	for kind, path := range templates {
		apiVersion := map[string]string{"CronJob": "batch/v1", "Job": "batch/v1", "ReplicationController": "v1"}[kind]
		if apiVersion == "" {
			apiVersion = "apps/v1"
		}
		text := `{"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}`
		for i := len(path) - 1; i >= 0; i-- {
			text = fmt.Sprintf(`{%q: %s}`, path[i], text)
		}
		text = fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": "w", "namespace": "shop", "uid": "u"}, `,
			apiVersion, kind) + strings.TrimPrefix(text, "{")
		file := filepath.Join(t.TempDir(), "manifest.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var pods []*v1.Pod
		_, err := ReadFiles(t.Context(), []string{file}, nil, Handler{Manifests: true,
			Node: func(*v1.Node) error { return nil },
			Pod:  func(pod *v1.Pod) error { pods = append(pods, pod); return nil }})
		if err != nil || len(pods) != 1 {
			t.Fatalf("%s: %d pods, %v", kind, len(pods), err)
		}
		owner := metav1.GetControllerOf(pods[0])
		if owner == nil || owner.Kind != kind || owner.APIVersion != apiVersion || owner.Name != "w" || owner.UID != "u" {
			t.Errorf("%s: controller %+v", kind, owner)
		}
	}
}
