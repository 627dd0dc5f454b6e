package chart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"loadline.dev/test/e2e/harness"
)

const folder = "../../charts/loadline"

func TestMain(m *testing.M) {
	// This module is none of the workspace; what the harness builds is.
	os.Unsetenv("GOWORK")
	os.Exit(m.Run())
}

type values = map[string]any

// registry is where the images of a release are pulled from.
const registry = "registry.example/ours"

// on returns values that switch components on and all others off. Images come from registry.
func on(components ...string) values {
	v := values{"image": values{"registry": registry}}
	for _, c := range []string{"scheduler", "extender", "expander", "autoscaler", "usage"} {
		v[c] = values{"enabled": false}
	}
	for _, c := range components {
		v[c] = values{"enabled": true}
	}
	return v
}

// with sets a value by its path, such as "autoscaler.mode".
func (v setter) with(path string, value any) setter {
	at, keys := v.values, strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		next, ok := at[key].(values)
		if !ok {
			next = values{}
			at[key] = next
		}
		at = next
	}
	at[keys[len(keys)-1]] = value
	return v
}

type setter struct{ values values }

func load(t testing.TB) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// render returns the objects of a release, in no order.
func render(c *chart.Chart, namespace string, v values) ([]*unstructured.Unstructured, error) {
	return renderFor(c, namespace, v, chartutil.DefaultCapabilities)
}

// renderFor is render for an API server of these capabilities.
func renderFor(c *chart.Chart, namespace string, v values,
	capabilities *chartutil.Capabilities) ([]*unstructured.Unstructured, error) {
	all, err := chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: "test", Namespace: namespace,
		IsInstall: true}, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for name, content := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for document := range strings.SplitSeq(content, "\n---") {
			object := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
			if len(object.Object) > 0 {
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}

func mustRender(t testing.TB, c *chart.Chart, namespace string, v values) []*unstructured.Unstructured {
	t.Helper()
	objects, err := render(c, namespace, v)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// helm returns Helm's actions on a control plane.
func helm(t *testing.T, cluster *harness.Cluster, namespace string) *action.Configuration {
	t.Helper()
	getter := genericclioptions.NewConfigFlags(false)
	getter.KubeConfig, getter.Namespace = &cluster.Kubeconfig, &namespace
	config := &action.Configuration{}
	if err := config.Init(getter, namespace, "secret", func(string, ...any) {}); err != nil {
		t.Fatal(err)
	}
	return config
}

func key(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

func find(objects []*unstructured.Unstructured, kind, name string) (*unstructured.Unstructured, error) {
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o, nil
		}
	}
	return nil, errors.New("there is no " + kind + " " + name)
}

func startCluster(t *testing.T, ctx context.Context) *harness.Cluster {
	t.Helper()
	cluster, err := harness.Start(ctx, harness.Options{Log: t.Logf, ControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}
