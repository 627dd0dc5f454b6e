package indexedjob

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/sweep"
)

func TestRanges(t *testing.T) {
	for text, numbers := range map[string][]int{"": nil, "0": {0}, "0-3,7,9-10": {0, 1, 2, 3, 7, 9, 10}} {
		if got := formatRanges(numbers); got != text {
			t.Errorf("%v is %q, want %q", numbers, got, text)
		}
		if got, err := parseRanges(text, 11); err != nil || !slices.Equal(got, numbers) {
			t.Errorf("%q is %v, %v, want %v", text, got, err, numbers)
		}
	}
	for _, text := range []string{"11", "3-11", "4-3", "-1", "x", "1,,2", "1-"} {
		if got, err := parseRanges(text, 11); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func planOf(t *testing.T) *sweep.Plan {
	t.Helper()
	file, err := sweep.ParseFile([]byte("apiVersion: loadline.dev/v1alpha1\nkind: Sweep\nmetadata: {name: s}\n" +
		"spec: {inputs: [{scenario: a}], seeds: {count: 10}, settings: [{path: settings.slackPercent, values: [1, 2]}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := sweep.NewPlan(file, []string{"a"}, []*loadlinev1.Scenario{{}})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func options() Options {
	return Options{Namespace: "n", Image: "i", Version: "v", Shards: 4, Parallelism: 100, Retries: 2, MaxFailed: 9,
		CPU: resource.MustParse("1"), Memory: resource.MustParse("1Gi"), Queue: "q"}
}

// 30 rows in 4 shards: 8 each, and 6 in the last one.
func TestEachRowIsInOneShard(t *testing.T) {
	plan := planOf(t)
	j, err := New(plan, plan.Round(nil), options())
	if err != nil {
		t.Fatal(err)
	}
	var rows []int
	for index := range j.Shards() {
		rows = append(rows, j.Of(index)...)
	}
	if !slices.Equal(rows, plan.Round(nil)) || j.Shards() != 4 || len(j.Of(3)) != 6 || j.Of(4) != nil && len(j.Of(4)) > 0 {
		t.Errorf("%d shards have %v", j.Shards(), rows)
	}
	spec := j.Job.Spec
	if *spec.CompletionMode != batchv1.IndexedCompletion || *spec.Completions != 4 || *spec.Parallelism != 4 ||
		*spec.BackoffLimitPerIndex != 2 || *spec.MaxFailedIndexes != 4 || j.Job.Labels[queueLabel] != "q" {
		t.Errorf("the job is %+v", spec)
	}
	again, err := New(plan, plan.Round(nil), options())
	if err != nil || again.Name != j.Name {
		t.Errorf("the same rows have name %s and %s", j.Name, again.Name)
	}
	other, err := New(plan, plan.Round(nil)[1:], options())
	if err != nil || other.Name == j.Name {
		t.Errorf("other rows have the same name %s", j.Name)
	}
}

func TestLargeInputsNeedAClaim(t *testing.T) {
	plan := planOf(t)
	numbers := make([]int, 1_000_000)
	for i := range numbers {
		numbers[i] = 2 * i
	}
	if _, err := New(plan, numbers, options()); err == nil || !strings.Contains(err.Error(), "--inputs-claim") {
		t.Errorf("error %v", err)
	}
	o := options()
	o.Claim = "c"
	j, err := New(plan, plan.Round(nil), o)
	if err != nil || len(j.Inputs.BinaryData) > 0 ||
		!strings.Contains(j.Job.Spec.Template.Spec.Containers[0].Args[2], BundleName(plan)) {
		t.Errorf("with a claim: %v, %v", j, err)
	}
}

func TestResultsAreThoseOfTheShard(t *testing.T) {
	packed, err := packRows([]*sweep.Row{{Row: 4, Digest: "a"}, {Row: 5, USD: 0.1}})
	if err != nil {
		t.Fatal(err)
	}
	object := &v1.ConfigMap{BinaryData: map[string][]byte{"rows.gz": packed}}
	rows, err := unpackRows(object, []int{4, 5})
	if err != nil || len(rows) != 2 || rows[0].Digest != "a" || rows[1].USD != 0.1 {
		t.Errorf("rows %v, %v", rows, err)
	}
	for _, want := range [][]int{{4}, {4, 5, 6}, {5, 4}, {4, 6}} {
		if _, err := unpackRows(object, want); err == nil {
			t.Errorf("%v will do for 4 and 5", want)
		}
	}
}
