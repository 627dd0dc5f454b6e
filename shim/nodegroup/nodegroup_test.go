package nodegroup

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

const ours = `apiVersion: loadline.dev/v1alpha1
kind: NodeGroup
metadata:
  name: general
spec:
  min: 1
  max: 20
  target: 5
  instanceType: n1-standard-8
  price: 0.38
  template:
    metadata:
      labels: {pool: general, kubernetes.io/hostname: template}
    status:
      allocatable: {cpu: "8", memory: 28Gi, pods: "110"}
`

const sizes = `  size:
    scaleUpThresholdPercent: 70
    taintUpperCapacityThresholdPercent: 60
    taintLowerCapacityThresholdPercent: 40
    slowNodeRemovalRate: 2
    fastNodeRemovalRate: 4
    softDeleteGracePeriod: 1m
    hardDeleteGracePeriod: 10m
    scaleUpCoolDownPeriod: 5m
`

// escalator is the example of Escalator's documentation, shortened to what has no default.
const escalator = `node_groups:
  - name: "shared"
    label_key: "customer"
    label_value: "shared"
    cloud_provider_group_name: "shared-nodes"
    min_nodes: 1
    max_nodes: 30
    dry_mode: false
    taint_upper_capacity_threshold_percent: 40
    taint_lower_capacity_threshold_percent: 10
    slow_node_removal_rate: 2
    fast_node_removal_rate: 5
    scale_up_threshold_percent: 70
    scale_up_cool_down_period: 2m
    scale_up_cool_down_timeout: 10m
    soft_delete_grace_period: 1m
    hard_delete_grace_period: 10m
    taint_effect: NoExecute
    max_node_age: 24h
    aws:
      launch_template_version: "1"
`

func TestParseReadsAGroup(t *testing.T) {
	file, err := Parse([]byte(ours + sizes))
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 1 || len(file.Warnings) != 0 {
		t.Fatalf("groups %v, warnings %v", file.Groups, file.Warnings)
	}
	group := file.Groups[0]
	spec := group.Spec
	if group.Name() != "general" || spec.Min != 1 || spec.Max != 20 || *spec.Target != 5 || *spec.Price != 0.38 ||
		spec.InstanceType != "n1-standard-8" {
		t.Errorf("group %+v", group)
	}
	if spec.Template.Status.Allocatable.Cpu().MilliValue() != 8000 {
		t.Errorf("template %+v", spec.Template.Status)
	}
	if group.CloudGroup() != "general" || spec.Size.SoftDeleteGracePeriod.Duration != time.Minute ||
		spec.Size.ScaleUpThresholdPercent != 70 {
		t.Errorf("size %+v", spec.Size)
	}
	// The template's hostname is not a label of the other nodes.
	if !spec.Has(map[string]string{"pool": "general", "zone": "a"}) || spec.Has(map[string]string{"pool": "batch"}) ||
		spec.Has(nil) {
		t.Error("the labels of the template do not select the nodes of the group")
	}
}

func TestParseReadsSeveralDocuments(t *testing.T) {
	file, err := Parse([]byte("---\n" + ours + "---\n---\n" + strings.Replace(ours, "name: general", "name: batch", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 2 || file.Groups[0].Name() != "general" || file.Groups[1].Name() != "batch" {
		t.Errorf("groups %v", file.Groups)
	}
}

func TestParseReadsEscalatorsFile(t *testing.T) {
	file, err := Parse([]byte(escalator))
	if err != nil {
		t.Fatal(err)
	}
	group := file.Groups[0]
	if group.Name() != "shared" || group.Spec.Min != 1 || group.Spec.Max != 30 ||
		!group.Spec.Has(map[string]string{"customer": "shared"}) {
		t.Errorf("group %+v", group)
	}
	size := group.Spec.Size
	if size.CatchAll || size.TaintUpperCapacityThresholdPercent != 40 || size.FastNodeRemovalRate != 5 ||
		size.MaxNodeAge.Duration != 24*time.Hour ||
		size.HardDeleteGracePeriod.Duration != 10*time.Minute || size.ScaleUpCoolDownPeriod.Duration != 2*time.Minute {
		t.Errorf("size %+v", size)
	}
	if group.CloudGroup() != "shared-nodes" || size.TaintEffect != "NoExecute" || size.DryMode {
		t.Errorf("at the cloud %q, size %+v", group.CloudGroup(), size)
	}
	dry, err := Parse([]byte(strings.Replace(escalator, "dry_mode: false", "dry_mode: true", 1)))
	if err != nil || !dry.Groups[0].Spec.Size.DryMode {
		t.Errorf("dry mode is not read: %v", err)
	}
	// Escalator's own documentation has an option that it does not read.
	if len(file.Warnings) != 1 || !strings.Contains(file.Warnings[0], `"node_groups[0].scale_up_cool_down_timeout"`) {
		t.Errorf("warnings %q", file.Warnings)
	}
}

// In mode compat DaemonSet pods are left out, whatever the file says, and who says otherwise hears of it.
func TestIgnoredTellsWhatPlaysNoPart(t *testing.T) {
	for _, c := range []struct {
		options string
		want    int
	}{
		{"", 0}, {"    mode: compat\n", 0}, {"    daemonSets: subtract\n", 0},
		{"    mode: compat\n    daemonSets: ignore\n", 0},
		{"    mode: compat\n    daemonSets: subtract\n", 1},
	} {
		file, err := Parse([]byte(ours + sizes + c.options))
		if err != nil {
			t.Fatal(err)
		}
		got := file.Ignored()
		if len(got) != c.want || c.want > 0 && !strings.HasPrefix(got[0],
			`node group "general": spec.size.daemonSets: subtract plays no part in mode compat`) {
			t.Errorf("%q: %q", c.options, got)
		}
	}
}

func TestParseReadsEscalatorsDefaultGroup(t *testing.T) {
	text := strings.Replace(escalator, `name: "shared"`, "name: default", 1)
	text = strings.Replace(strings.Replace(text, "min_nodes: 1", "min_nodes: 0", 1), "max_nodes: 30", "max_nodes: 0", 1)
	file, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	spec := file.Groups[0].Spec
	if !spec.Size.CatchAll || spec.Min != 0 || spec.Max != math.MaxInt32 {
		t.Errorf("spec %+v", spec)
	}
	if len(file.Warnings) != 2 || !strings.Contains(file.Warnings[1], "no bounds") {
		t.Errorf("warnings %q", file.Warnings)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"NoGroup", "\n---\n", "holds no node group"},
		{"AnotherKind", "apiVersion: v1\nkind: Node\n",
			`apiVersion "v1", kind "Node": must be loadline.dev/v1alpha1, NodeGroup`},
		{"UnknownField", strings.Replace(ours, "  price:", "  prize:", 1), `unknown field "spec.prize"`},
		{"UnknownFieldOfTheTemplate", strings.Replace(ours, "status:", "statuz:", 1),
			`unknown field "spec.template.statuz"`},
		{"TheSameName", ours + "---\n" + ours, `node group "general": name: twice in the file`},
		{"NoName", strings.Replace(ours, "name: general", "name: ''", 1), "metadata.name: missing"},
		{"PriceIsText", strings.Replace(ours, "0.38", "'0.38'", 1),
			`node group "general": spec.price: has to be a number, and is "0.38"`},
		{"MaxIsTooLarge", strings.Replace(ours, "max: 20", "max: 20000000000", 1),
			`node group "general": spec.max: has to be a whole number of 32 bits, and is 20000000000`},
		{"TemplateOfAnotherGroup", ours + "  nodeSelector: {pool: other}\n",
			`spec.template.metadata.labels["pool"]: "general" is not "other", by which spec.nodeSelector`},
		{"NegativeMin", strings.Replace(ours, "min: 1", "min: -1", 1), "spec.min: -1 is negative"},
		{"MaxBelowMin", strings.Replace(ours, "max: 20", "max: 0", 1), "spec.max: 0 is less than min, 1"},
		{"NegativePrice", strings.Replace(ours, "0.38", "-0.38", 1), "spec.price: -0.38 is not an amount of money"},
		{"NoLabel", strings.Replace(ours, "labels: {pool: general, kubernetes.io/hostname: template}", "labels: {}", 1),
			"spec.nodeSelector: missing"},
		{"ThresholdsOutOfOrder",
			ours + strings.Replace(sizes, "scaleUpThresholdPercent: 70", "scaleUpThresholdPercent: 60", 1),
			"spec.size.taintUpperCapacityThresholdPercent: 60 is not less than scaleUpThresholdPercent, 60"},
		{"SoftNotBelowHard",
			ours + strings.Replace(sizes, "softDeleteGracePeriod: 1m", "softDeleteGracePeriod: 10m", 1),
			"spec.size.softDeleteGracePeriod: 10m0s is not less than hardDeleteGracePeriod, 10m0s"},
		{"Mode", ours + sizes + "    mode: compatible\n", `spec.size.mode: "compatible" must be default or compat`},
		{"EscalatorMinEqualsMax", strings.Replace(escalator, "min_nodes: 1", "min_nodes: 30", 1),
			`node_groups[0] "shared": min_nodes: 30 is not less than max_nodes, 30`},
		{"EscalatorNoLabel", strings.Replace(escalator, `label_key: "customer"`, `label_key: ""`, 1),
			`label_key: missing`},
		{"EscalatorThreshold", strings.Replace(escalator, "threshold_percent: 40", "threshold_percent: 0", 1),
			"taint_lower_capacity_threshold_percent: 10 is not less than taint_upper_capacity_threshold_percent, 0"},
		{"EscalatorDuration",
			strings.Replace(escalator, "soft_delete_grace_period: 1m", "soft_delete_grace_period: soon", 1),
			`soft_delete_grace_period: "soon" is not a duration`},
		{"TaintEffect", ours + sizes + "    taintEffect: Always\n",
			`spec.size.taintEffect: "Always" must be NoSchedule`},
		{"EscalatorTaintEffect", strings.Replace(escalator, "taint_effect: NoExecute", "taint_effect: Always", 1),
			`taint_effect: "Always" must be NoSchedule`},
		{"EscalatorAndOthers", escalator + "---\n" + ours, "an Escalator file holds nothing else"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A v1 List holds groups, as kubectl prints several objects, and an amount that is none is named.
func TestListsAndAmounts(t *testing.T) {
	const group = `{"apiVersion":"loadline.dev/v1alpha1","kind":"NodeGroup","metadata":{"name":%q},"spec":{"min":0,"max":2,
"template":{"metadata":{"labels":{"pool":"a"}},"status":{
"capacity":{"cpu":"4","memory":"16Gi","pods":"110"},
"allocatable":{"cpu":%q,"memory":"16Gi","pods":"110"}}}}}`
	list := func(cpu string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"List","items":[`+group+","+group+"]}", "a", "4", "b", cpu)
	}
	file, err := Parse(list("4"))
	if err != nil || len(file.Groups) != 2 || file.Groups[1].Name() != "b" {
		t.Errorf("%v, %+v", err, file)
	}
	const want = `document 0 item 1: node group "b": ` +
		`spec.template.status.allocatable.cpu: "4 cores": quantities must match`
	if _, err = Parse(list("4 cores")); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err = Parse([]byte(`{"apiVersion":"v1","kind":"List","items":[]}`)); err == nil ||
		err.Error() != "holds no node group" {
		t.Errorf("got %v of an empty list", err)
	}
}
