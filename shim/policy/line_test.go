package policy

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
)

func TestLineReadsNumbersAndTexts(t *testing.T) {
	var line Line
	text := "maxLimitsOverAllocatable: {memory: 1.5, cpu: '3', ephemeral-storage: 0.125}\n" +
		"lineNodeLabelPrefix: lines.example.com\nlineExemptNamespaces: [kube-system]"
	if err := DecodeStrict([]byte(text), &line); err != nil {
		t.Fatal(err)
	}
	if errs := line.ValidateAt(nil); len(errs) > 0 {
		t.Fatal(errs)
	}
	got := strings.Join(strings.Fields(prototext.MarshalOptions{}.Format(line.Proto(nil))), " ")
	want := `resources:{resource:"cpu" max_limits_over_allocatable:"3"} ` +
		`resources:{resource:"ephemeral-storage" max_limits_over_allocatable:"0.125"} ` +
		`resources:{resource:"memory" max_limits_over_allocatable:"1.5"} ` +
		`node_label_prefix:"lines.example.com" exempt_namespaces:"kube-system"`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if (Line{}).Proto(nil) != nil || (Line{}).On() {
		t.Error("no resource, and yet a line")
	}
}

func TestLineRefuses(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"maxLimitsOverAllocatable: {gpu: 1}", "Unsupported value"},
		{"maxLimitsOverAllocatable: {nvidia.com/gpu: 1}", "Unsupported value"},
		{"maxLimitsOverAllocatable: {cpu: 0.09}", "[0.1, 1000]"},
		{"maxLimitsOverAllocatable: {cpu: 1001}", "[0.1, 1000]"},
		{"maxLimitsOverAllocatable: {cpu: 1.0001}", "[0.1, 1000]"},
		{"maxLimitsOverAllocatable: {cpu: '1e2'}", "[0.1, 1000]"},
		{"maxLimitsOverAllocatable: {cpu: -1}", "[0.1, 1000]"},
		{"maxLimitsOverAllocatable: {cpu: ''}", "[0.1, 1000]"},
		{"maxLimitsOverAllocatable: {cpu: true}", "cpu: true: must be a number"},
		{"maxLimitsOverAllocatable: {cpu: 1}\nlineNodeLabelPrefix: a/b", "lineNodeLabelPrefix"},
		{"maxLimitsOverAllocatable: {cpu: 1}\nlineExemptNamespaces: [A]", "lineExemptNamespaces[0]"},
		{"lineExemptNamespaces: [a]", "do nothing"},
	} {
		var line Line
		err := DecodeStrict([]byte(c.text), &line)
		if err == nil {
			err = line.ValidateAt(nil).ToAggregate()
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q in it", c.text, err, c.says)
		}
	}
	for _, entries := range [][]string{{"cpu"}, {"cpu=1", "cpu=2"}, {"=1"}, {"cpu=x"}} {
		if _, err := ReadLine(entries, "", nil); err == nil {
			t.Errorf("%v is taken", entries)
		}
	}
	if line, err := ReadLine([]string{"cpu=3", "memory=1.5"}, "", nil); err != nil || len(line.MaxLimitsOverAllocatable) != 2 {
		t.Errorf("got %v, error %v", line, err)
	}
}

func TestLineGoesWithPoliciesThatCountAllPodsAlike(t *testing.T) {
	line := Line{MaxLimitsOverAllocatable: map[string]Ratio{"cpu": "1"}}
	for _, by := range []Policy{{Preset: "kep217"}, {PodLimits: "Proposal"}, {MissingLimitScope: "IncomingPod"}} {
		if line.CheckCounting(by) == nil {
			t.Errorf("%+v is taken", by)
		}
		if (Line{}).CheckCounting(by) != nil {
			t.Errorf("%+v is refused without a line", by)
		}
	}
	if err := line.CheckCounting(Policy{Preset: "strict"}); err != nil {
		t.Error(err)
	}
}
