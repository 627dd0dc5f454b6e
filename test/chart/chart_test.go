// Package chart tests charts/loadline with Helm's own library.
package chart

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	v1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"loadline.dev/test/e2e/harness"
)

// plain takes away what Helm's conventions add, and reads configuration that is text within an object.
func plain(t *testing.T, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	o = o.DeepCopy()
	labels := o.GetLabels()
	for _, l := range []string{"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "helm.sh/chart"} {
		delete(labels, l)
	}
	unstructured.RemoveNestedField(o.Object, "metadata", "labels")
	if len(labels) > 0 {
		o.SetLabels(labels)
	}
	annotations, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "annotations")
	delete(annotations, "checksum/config")
	unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "annotations")
	if len(annotations) > 0 {
		if err := unstructured.SetNestedStringMap(o.Object, annotations, "spec", "template", "metadata",
			"annotations"); err != nil {
			t.Fatal(err)
		}
	}
	if o.GetKind() == "ConfigMap" {
		data, _ := o.Object["data"].(map[string]any) // nil: a program writes it
		for name, text := range data {
			if !strings.HasSuffix(name, ".yaml") {
				continue
			}
			var config map[string]any
			if err := yaml.Unmarshal([]byte(text.(string)), &config); err != nil {
				t.Fatalf("%s: %s: %v", key(o), name, err)
			}
			data[name] = config
		}
	}
	content, err := yaml.Marshal(o.Object) // numbers of one type
	if err != nil {
		t.Fatal(err)
	}
	var result map[string]any
	if err := yaml.Unmarshal(content, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// In the namespace and with the registry that manifests/ name, and with nothing else set, a component is what its
// folders hold.
func TestChartEqualsManifests(t *testing.T) {
	act := setter{on("autoscaler")}.with("autoscaler.mode", "act")
	ordering := setter{on("autoscaler")}.with("autoscaler.mode", "act").
		with("autoscaler.config.decisions", []any{"scale-down", "downscale-order"})
	for _, c := range []struct {
		name, namespace string
		values          values
		folders         []string
		// skipped are objects that only one side has, or that are to differ.
		skipped []string
	}{
		{"scheduler", "loadline-system", on("scheduler"), []string{"second-scheduler"}, []string{"Namespace /loadline-system"}},
		{"extender", "kube-system", on("extender"), []string{"extender"}, nil},
		{"expander", "kube-system", on("expander"), []string{"expander"},
			[]string{"Secret kube-system/loadline-expander", "ConfigMap kube-system/loadline-prices"}},
		{"autoscaler", "kube-system", on("autoscaler"), []string{"autoscaler"}, nil},
		{"usage", "kube-system", on("usage"), []string{"usage"}, nil},
		{"usage by metrics.k8s.io", "kube-system", setter{on("usage")}.with("usage.metricsAPI", true).values,
			[]string{"usage", "usage/metrics-api"}, []string{"Deployment kube-system/loadline-usage"}},
		{"autoscaler that acts", "kube-system", act.values,
			[]string{"autoscaler", "autoscaler/act", "autoscaler/act-nodes", "autoscaler/slack"},
			[]string{"ConfigMap kube-system/loadline-autoscaler"}},
		{"autoscaler that orders pods", "kube-system", ordering.values,
			[]string{"autoscaler", "autoscaler/act", "autoscaler/act-nodes", "autoscaler/act-downscale-order"},
			[]string{"ConfigMap kube-system/loadline-autoscaler"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, want := map[string]map[string]any{}, map[string]map[string]any{}
			v := setter{c.values}.with("image.registry", "registry.invalid").values // as in manifests/
			for _, o := range mustRender(t, load(t), c.namespace, v) {
				got[key(o)] = plain(t, o)
			}
			for _, f := range c.folders {
				objects, err := harness.ManifestObjects(f)
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range objects {
					want[key(o)] = plain(t, o)
				}
			}
			for _, k := range c.skipped {
				delete(got, k)
				delete(want, k)
			}
			if len(want) < 4 {
				t.Errorf("only %d objects are compared", len(want))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("manifests/ against the chart:\n%s", diff)
			}
		})
	}
}

// All combinations of components and of what decides which objects there are pass Helm's lint, and what they run is
// hardened and is pulled from the registry that was named.
func TestCombinations(t *testing.T) {
	c := load(t)
	all := []string{"scheduler", "extender", "expander", "autoscaler"}
	for mask := range 1 << len(all) {
		var enabled []string
		for i, name := range all {
			if mask>>i&1 == 1 {
				enabled = append(enabled, name)
			}
		}
		for _, mode := range []string{"observe", "act"} {
			for _, keep := range []string{"deployments", "capacitybuffers", "report"} {
				v := setter{on(enabled...)}.with("autoscaler.mode", mode).with("autoscaler.config.slack.keep", keep).
					with("autoscaler.config.cloudProvider.kind", map[string]string{"report": "karpenter",
						"capacitybuffers": "cluster-api", "deployments": "externalgrpc"}[keep]).
					with("monitoring", values{"serviceMonitor": true, "podMonitor": true, "rules": true,
						"dashboard": true}).
					with("autoscaler.config.slack.capacityBuffers", keep == "deployments").
					with("autoscaler.config.scaleUp.capacityQuotas", keep == "report").
					with("scheduler.replace", mask%2 == 1).values
				objects := mustRender(t, c, "anywhere", v)
				seen := map[string]bool{}
				for _, o := range objects {
					if seen[key(o)] {
						t.Errorf("%v, %s, %s: %s occurs twice", enabled, mode, keep, key(o))
					}
					seen[key(o)] = true
					checkImages(t, o)
					if n := o.GetNamespace(); !slices.Contains([]string{"", "anywhere", "loadline-slack"}, n) &&
						o.GetName() != "loadline-scheduler:authentication-reader" {
						t.Errorf("%s is not in the namespace of the release", key(o))
					}
				}
				has := func(name string) bool { return slices.Contains(enabled, name) }
				for k, want := range map[string]bool{
					"Deployment anywhere/loadline-scheduler":                        has("scheduler"),
					"DaemonSet anywhere/loadline-gateway":                           has("extender"),
					"Deployment anywhere/loadline-expander":                         has("expander"),
					"Deployment anywhere/loadline-autoscaler":                       has("autoscaler"),
					"ClusterRole /loadline-autoscaler:act":                          has("autoscaler") && mode == "act",
					"ClusterRole /loadline-autoscaler:act-nodes":                    has("autoscaler") && mode == "act",
					"ResourceQuota loadline-slack/loadline-slack":                   has("autoscaler") && mode == "act" && keep == "deployments",
					"Role loadline-slack/loadline-autoscaler:slack-capacitybuffers": has("autoscaler") && mode == "act" && keep == "capacitybuffers",
					"ClusterRole /loadline-autoscaler:capacity-buffers":             has("autoscaler") && keep == "deployments",
					"ClusterRole /loadline-autoscaler:act-capacity-buffers":         has("autoscaler") && keep == "deployments" && mode == "act",
					"ClusterRole /loadline-autoscaler:capacity-quotas":              has("autoscaler") && keep == "report",
					"ClusterRole /loadline-autoscaler:karpenter":                    has("autoscaler") && keep == "report",
					"ClusterRole /loadline-autoscaler:act-karpenter":                has("autoscaler") && keep == "report" && mode == "act",
					"ClusterRole /loadline-autoscaler:cluster-api":                  has("autoscaler") && keep == "capacitybuffers",
					"ClusterRole /loadline-autoscaler:act-cluster-api":              has("autoscaler") && keep == "capacitybuffers" && mode == "act",
					"ClusterRole /loadline-autoscaler:act-despite-budgets":          false,
					"ClusterRole /loadline-autoscaler:act-downscale-order":          false,
					"ServiceMonitor anywhere/loadline-autoscaler":                   has("autoscaler"),
					"PrometheusRule anywhere/loadline-autoscaler":                   has("autoscaler"),
					"ServiceMonitor anywhere/loadline-scheduler":                    has("scheduler"),
					"PrometheusRule anywhere/loadline-scheduler":                    has("scheduler"),
					"PodMonitor anywhere/loadline-gateway":                          has("extender"),
					"PrometheusRule anywhere/loadline-gateway":                      has("extender"),
					"PodMonitor anywhere/loadline-expander":                         has("expander"),
					"PrometheusRule anywhere/loadline-expander":                     has("expander"),
				} {
					if seen[k] != want {
						t.Errorf("%v, %s, %s: %s is there: %v", enabled, mode, keep, k, seen[k])
					}
				}
			}
		}
	}
}

// The comments of the values name exactly those components that have the monitors.
func TestValuesNameWhatIsMonitored(t *testing.T) {
	all := []string{"scheduler", "extender", "expander", "autoscaler", "usage"}
	content, err := os.ReadFile(filepath.Join(folder, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for value, kind := range map[string]string{"serviceMonitor": "ServiceMonitor", "podMonitor": "PodMonitor"} {
		_, comment, _ := strings.Cut(string(content), "  "+value+": false # ")
		comment, _, _ = strings.Cut(comment, "\n")
		comment, _, _ = strings.Cut(comment, ". ") // the rest says what this needs
		v := setter{on(all...)}.with("monitoring", values{value: true}).values
		objects := mustRender(t, load(t), "anywhere", v)
		for _, component := range all {
			name := strings.Replace(component, "extender", "gateway", 1)
			_, err := find(objects, kind, "loadline-"+name)
			if named := strings.Contains(comment, component); named != (err == nil) {
				t.Errorf("%s %q: it names the %s: %v, which has one: %v", value, comment, component, named, err == nil)
			}
		}
	}
}

func checkImages(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	template, ok, _ := unstructured.NestedMap(o.Object, "spec", "template")
	if !ok {
		return
	}
	var workload v1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(
		map[string]any{"spec": map[string]any{"template": template}}, &workload, true); err != nil {
		t.Errorf("%s: %v", key(o), err)
	}
	pod := workload.Spec.Template.Spec
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if !strings.HasPrefix(c.Image, registry+"/loadline") || !strings.HasSuffix(c.Image, ":v0.1.0") {
			t.Errorf("%s: image %s", key(o), c.Image)
		}
	}
}

func TestLint(t *testing.T) {
	for _, v := range []values{{"image": values{"registry": registry}}, on(), on("scheduler", "extender", "expander", "autoscaler")} {
		for _, m := range lint.AllWithKubeVersion(folder, v, "anywhere", nil).Messages {
			if m.Severity >= support.InfoSev {
				t.Errorf("%v", m)
			}
		}
	}
}

// A misspelt or impossible value is refused by the schema, with its name.
func TestSchemaRefuses(t *testing.T) {
	c := load(t)
	for path, value := range map[string]any{
		"scheduler.enable":              true,
		"scheduler.weight":              0,
		"scheduler.kubernetes":          "1.35",
		"scheduler.config":              values{"profiles": []any{}},
		"autoscaler.mode":               "dance",
		"autoscaler.config":             values{"mode": "act"},
		"autoscaler.extraArgs":          []any{"no-dash"},
		"autoscaler.extraRules":         []any{values{"apiGroups": []any{"g"}, "resources": []any{"r"}}},
		"expander.prices":               values{"list.txt": "a"},
		"image.digests":                 values{"loadlined": "latest"},
		"image.registry":                "https://registry.example/ours",
		"extender.replicas":             3,
		"autoscler":                     values{},
		"monitoring.rules":              "yes",
		"scheduler.resources.limit":     values{},
		"fullnameOverride":              "Not A Name",
		"labels":                        values{"team": 7},
		"usage.serviceAccount.names":    "x",
		"autoscaler.podAnnotations.one": 1,
	} {
		_, err := render(c, "anywhere", setter{on("scheduler")}.with(path, value).values)
		// The validator names the path of what is wrong, or the name that may not be there.
		named := strings.Split(path, ".")[0]
		if path == "expander.prices" {
			named = "list.txt"
		}
		if err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("%s: %v is refused by %v, want an error that names %s", path, value, err, named)
		}
	}
}

// A scheduler that is newer than its API server is refused. Without a server nothing is known about it.
func TestSchedulerNeedsItsAPIServer(t *testing.T) {
	c := load(t)
	for _, test := range []struct {
		server, scheduler, component string
		isServer, refused            bool
	}{
		{"v1.36.0", "1.36", "scheduler", true, false},
		{"v1.35.9", "1.36", "scheduler", true, true},
		{"v1.37.1-gke.100", "1.36", "scheduler", true, false},
		{"v1.36.3-eks-1a2b3c", "1.36", "scheduler", true, false},
		{"v1.36.3-eks-1a2b3c", "1.37", "scheduler", true, true},
		{"v1.37.0", "1.37", "scheduler", true, false},
		{"v1.35.9", "1.36", "extender", true, false},
		{"v1.20.0", "1.36", "scheduler", false, false},
	} {
		capabilities := chartutil.DefaultCapabilities.Copy()
		capabilities.KubeVersion.Version = test.server
		if test.isServer {
			capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), "apiregistration.k8s.io/v1")
		}
		v := setter{on(test.component)}.with("scheduler.kubernetes", test.scheduler).values
		_, err := renderFor(c, "anywhere", v, capabilities)
		if refused := err != nil && strings.Contains(err.Error(), test.server+": a scheduler may not be newer"); refused !=
			test.refused || (err != nil && !refused) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// Every value of a component does something.
func TestValues(t *testing.T) {
	c := load(t)
	digest := "sha256:" + strings.Repeat("ab", 32)
	for _, test := range []struct {
		component, kind, name, path string
		value                       any
		want                        string
	}{
		{"scheduler", "Deployment", "loadline-scheduler", "scheduler.replicas", 0, "replicas: 0"},
		{"scheduler", "Deployment", "loadline-scheduler", "scheduler.extraArgs", []any{"-v=4"}, "- -v=4"},
		{"scheduler", "Deployment", "loadline-scheduler", "scheduler.engineArgs", []any{"--threads=7"}, "- --threads=7"},
		{"scheduler", "Deployment", "loadline-scheduler", "image.digests.loadlined", digest, "loadlined:v0.1.0@" + digest},
		{"scheduler", "Deployment", "loadline-scheduler", "image.tag", "v9", "loadline-scheduler:v9"},
		{"scheduler", "Deployment", "loadline-scheduler", "scheduler.kubernetes", "1.37", "/loadline-scheduler-1.37:v0.1.0"},
		{"scheduler", "Deployment", "loadline-scheduler", "image.pullPolicy", "Always", "imagePullPolicy: Always"},
		{"scheduler", "Deployment", "loadline-scheduler", "image.pullSecrets", []any{values{"name": "s3"}}, "name: s3"},
		{"scheduler", "ConfigMap", "loadline-scheduler", "scheduler.weight", 3, "weight: 3"},
		{"scheduler", "ConfigMap", "loadline-scheduler", "scheduler.pluginArgs.preset", "kep217", "preset: kep217"},
		{"scheduler", "ConfigMap", "loadline-scheduler", "scheduler.config.parallelism", 5, "parallelism: 5"},
		{"scheduler", "ConfigMap", "loadline-scheduler", "scheduler.replace", true, "schedulerName: default-scheduler"},
		{"extender", "DaemonSet", "loadline-gateway", "extender.extraArgs", []any{"--preset=kep217"}, "--preset=kep217"},
		{"extender", "DaemonSet", "loadline-gateway", "extender.resources", values{"limits": values{"memory": "7Gi"}},
			"memory: 7Gi"},
		{"extender", "DaemonSet", "loadline-gateway", "extender.engineResources", values{"limits": values{"memory": "6Gi"}},
			"memory: 6Gi"},
		{"expander", "Deployment", "loadline-expander", "expander.prices", values{"mine.csv": "a"},
			"--prices=/etc/loadline/prices/mine.csv"},
		{"expander", "ConfigMap", "loadline-prices", "expander.prices", values{"mine.csv": "a"}, "mine.csv: a"},
		{"expander", "Deployment", "loadline-expander", "expander.rankPolicy.preset", "proposal",
			"--rank-policy=/etc/loadline/prices/rank-policy.yaml"},
		{"expander", "ConfigMap", "loadline-prices", "expander.rankPolicy.preset", "proposal", "kind: RankPolicy"},
		{"autoscaler", "Deployment", "loadline-autoscaler", "autoscaler.nodeSelector.a", "b", "nodeSelector:\n        a: b"},
		{"autoscaler", "Deployment", "loadline-autoscaler", "autoscaler.podAnnotations.a", "b", "a: b"},
		{"autoscaler", "Deployment", "loadline-autoscaler", "autoscaler.tolerations", []any{values{"key": "k7"}}, "key: k7"},
		{"autoscaler", "Deployment", "loadline-autoscaler", "autoscaler.affinity", values{"nodeAffinity": values{}},
			"nodeAffinity"},
		{"autoscaler", "ConfigMap", "loadline-autoscaler", "autoscaler.files", values{"r.yaml": "x: 1"}, "r.yaml: 'x: 1'"},
		{"autoscaler", "ConfigMap", "loadline-autoscaler", "autoscaler.config.scaleUp.maxNodesTotal", 7, "maxNodesTotal: 7"},
		{"autoscaler", "ConfigMap", "loadline-autoscaler", "autoscaler.config.clusterAutoscalerNamespaces", []any{"infra"},
			"- infra"},
		{"autoscaler", "ConfigMap", "loadline-autoscaler", "autoscaler.mode", "act", "mode: act"},
		{"scheduler", "Deployment", "loadline-scheduler", "scheduler.podLabels.team", "a", "team: a"},
		{"scheduler", "Deployment", "loadline-scheduler", "scheduler.priorityClassName", "high", "priorityClassName: high"},
		{"scheduler", "Deployment", "loadline-scheduler", "scheduler.topologySpreadConstraints",
			[]any{values{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}},
			"- labelSelector:\n          matchLabels:\n            app.kubernetes.io/name: loadline-scheduler\n        maxSkew: 1"},
		{"expander", "Deployment", "loadline-expander", "expander.extraEnv", []any{values{"name": "A", "value": "b"}},
			"value: 700MiB\n        - name: A\n          value: b"},
		{"expander", "Deployment", "loadline-expander", "expander.extraVolumes",
			[]any{values{"name": "more", "emptyDir": values{}}}, "- emptyDir: {}\n        name: more"},
		{"expander", "Deployment", "loadline-expander", "expander.extraVolumeMounts",
			[]any{values{"name": "more", "mountPath": "/more"}}, "- mountPath: /more\n          name: more"},
		{"usage", "ServiceAccount", "loadline-usage", "usage.serviceAccount.annotations", values{"role": "r"}, "role: r"},
		{"usage", "ServiceAccount", "mine", "usage.serviceAccount.name", "mine", "name: mine"},
		{"usage", "Deployment", "loadline-usage", "usage.serviceAccount.name", "mine", "serviceAccountName: mine"},
		{"usage", "RoleBinding", "loadline-usage:read", "autoscaler.serviceAccount.name", "mine", "name: mine\n  namespace"},
	} {
		objects := mustRender(t, c, "anywhere", setter{on(test.component)}.with(test.path, test.value).values)
		object, err := find(objects, test.kind, test.name)
		if err != nil {
			t.Errorf("%s: %v", test.path, err)
			continue
		}
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), test.want) {
			t.Errorf("%s=%v: no %q in\n%s", test.path, test.value, test.want, content)
		}
	}
	own := mustRender(t, c, "anywhere", setter{on("expander")}.with("expander.prices", values{"mine.csv": "a"}).values)
	gateway, err := find(own, "Deployment", "loadline-expander")
	if err != nil {
		t.Fatal(err)
	}
	if content, _ := yaml.Marshal(gateway.Object); strings.Contains(string(content), "aws-us-east-1") {
		t.Error("price lists of the chart stay beside one's own")
	}
	for _, o := range mustRender(t, c, "anywhere", setter{on("scheduler", "autoscaler")}.with("networkPolicies", false).values) {
		if o.GetKind() == "NetworkPolicy" {
			t.Errorf("%s is there without networkPolicies", key(o))
		}
	}
}

// Pods are replaced when their configuration changes.
func TestConfigurationRollsPods(t *testing.T) {
	c := load(t)
	sums := map[string]bool{}
	for _, weight := range []int{1, 2} {
		objects := mustRender(t, c, "anywhere", setter{on("scheduler")}.with("scheduler.weight", weight).values)
		d, err := find(objects, "Deployment", "loadline-scheduler")
		if err != nil {
			t.Fatal(err)
		}
		sum, _, _ := unstructured.NestedString(d.Object, "spec", "template", "metadata", "annotations", "checksum/config")
		sums[sum] = true
	}
	if len(sums) != 2 || sums[""] {
		t.Errorf("checksums %v", slices.Collect(maps.Keys(sums)))
	}
}

// The gateway reads all price lists of manifests/, and its ConfigMap holds them as they are.
func TestChartHasAllPriceLists(t *testing.T) {
	objects := mustRender(t, load(t), "anywhere", on("expander"))
	lists, err := find(objects, "ConfigMap", "loadline-prices")
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := find(objects, "Deployment", "loadline-expander")
	if err != nil {
		t.Fatal(err)
	}
	args, err := yaml.Marshal(gateway.Object)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../manifests/prices/*.csv*")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		text, _, _ := unstructured.NestedString(lists.Object, "data", name)
		if packed, there, _ := unstructured.NestedString(lists.Object, "binaryData", name); there {
			content, err := base64.StdEncoding.DecodeString(packed)
			if err != nil {
				t.Fatal(err)
			}
			text = string(content)
		}
		if text != string(want) {
			t.Errorf("%s: %d bytes, want %d as in manifests/", name, len(text), len(want))
		}
		if !strings.Contains(string(args), "--prices=/etc/loadline/prices/"+name+"\n") {
			t.Errorf("the gateway does not read %s", name)
		}
	}
}
