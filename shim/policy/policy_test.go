package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
)

// pod is one that requests nothing, as messages carry it.
func pod(t *testing.T) []byte {
	t.Helper()
	bytes, err := (&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// resources is a policy with n resources.
func resources(n int) string {
	text := "resources:\n"
	for i := range n {
		text += fmt.Sprintf("- {resource: example.com/r%d, weight: 1}\n", i)
	}
	return text
}

// A policy that passes validation passes the engine: the bound on resources is the engine's.
func TestTheEngineTakesAsManyResources(t *testing.T) {
	p, err := Parse([]byte(resources(16)))
	if err != nil {
		t.Fatal(err)
	}
	client := loadlinev1.NewSchedulerExtenderClient(enginetest.Open(t))
	ask := func(policy *loadlinev1.ScorePolicy) error {
		_, err := client.Score(t.Context(), &loadlinev1.ScoreRequest{Policy: policy, Pod: pod(t),
			Changes: &loadlinev1.Changes{View: "v", Epoch: 1, Revision: 1,
				FullList: &loadlinev1.FullListChunk{Last: true}}})
		return err
	}
	if err := ask(p.Proto()); err != nil {
		t.Error(err)
	}
	more := p.Proto()
	more.Resources = append(more.Resources, &loadlinev1.ResourceWeight{Resource: "cpu", Weight: 1})
	if err := ask(more); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "resources") {
		t.Errorf("17 resources: got error %v", err)
	}
}

// A policy that names no resources counts DefaultResources, by either preset.
func TestTheEngineHasTheSameDefaultResources(t *testing.T) {
	client := loadlinev1.NewSchedulerExtenderClient(enginetest.Open(t))
	for _, preset := range []string{"strict", "kep217"} {
		asked := Policy{Preset: preset}
		answer, err := client.Explain(t.Context(), &loadlinev1.ExplainRequest{Policy: asked.Proto(), Pod: pod(t),
			Changes: &loadlinev1.Changes{View: preset, Epoch: 1, Revision: 1,
				FullList: &loadlinev1.FullListChunk{Last: true}}})
		if err != nil {
			t.Fatal(err)
		}
		if counted := FromProto(answer.GetPolicy()).Resources; !slices.Equal(counted, DefaultResources) {
			t.Errorf("%s: the engine counts %v, DefaultResources are %v", preset, counted, DefaultResources)
		}
	}
}

func TestParseAndProto(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       *loadlinev1.ScorePolicy
	}{
		{"Empty", ``, &loadlinev1.ScorePolicy{Preset: loadlinev1.ScorePolicy_STRICT}},
		{"Preset", `preset: kep217`, &loadlinev1.ScorePolicy{Preset: loadlinev1.ScorePolicy_KEP217}},
		{"JSON", `{"preset":"strict","aggregate":"Worst"}`, &loadlinev1.ScorePolicy{
			Preset: loadlinev1.ScorePolicy_STRICT, Aggregate: loadlinev1.ScorePolicy_WORST}},
		{"Everything", `
preset: strict
resources:
- {resource: cpu, weight: 1}
- {resource: nvidia.com/gpu, weight: 100}
- {resource: hugepages-2Mi, weight: 3}
arithmetic: Truncating
podLimits: Proposal
maxLimitRatio: -1
aggregate: WeightedSum
absentResource: AddNothing
missingLimitScope: IncomingPod
missingLimits:
- {pods: BestEffort, resource: cpu, rule: Allocatable}
- {pods: Others, resource: cpu, rule: Fixed, fixed: 500m}
normalization: Absolute
blockersTogether: 50
`, &loadlinev1.ScorePolicy{
			Preset: loadlinev1.ScorePolicy_STRICT,
			Resources: []*loadlinev1.ResourceWeight{
				{Resource: "cpu", Weight: 1}, {Resource: "nvidia.com/gpu", Weight: 100},
				{Resource: "hugepages-2Mi", Weight: 3}},
			Arithmetic:        loadlinev1.ScorePolicy_TRUNCATING,
			PodLimits:         loadlinev1.ScorePolicy_PROPOSAL,
			MaxLimitRatio:     -1,
			Aggregate:         loadlinev1.ScorePolicy_WEIGHTED_SUM,
			AbsentResource:    loadlinev1.ScorePolicy_ADD_NOTHING,
			MissingLimitScope: loadlinev1.ScorePolicy_INCOMING_POD,
			MissingLimits: []*loadlinev1.MissingLimitRule{
				{Pods: loadlinev1.MissingLimitRule_BEST_EFFORT, Resource: "cpu",
					Rule: loadlinev1.MissingLimitRule_ALLOCATABLE},
				{Pods: loadlinev1.MissingLimitRule_OTHERS, Resource: "cpu", Rule: loadlinev1.MissingLimitRule_FIXED,
					Fixed: "500m"}},
			Normalization:    loadlinev1.ScorePolicy_ABSOLUTE,
			BlockersTogether: 50,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Proto(); !proto.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
			if back := FromProto(p.Proto()); !reflect.DeepEqual(back, p) {
				t.Errorf("back from the API: got %+v, want %+v", back, p)
			}
		})
	}
}

// Each error names the field and the value.
// Invariant H5.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"UnknownField", `pressets: strict`, `unknown field "pressets"`},
		{"UnknownNestedField", `resources: [{name: cpu, weight: 1}]`, `unknown field "resources[0].name"`},
		{"LetterCase", `Preset: strict`, `unknown field "Preset"`},
		{"RepeatedField", "preset: strict\npreset: kep217", `"preset" already set`},
		{"NotAnObject", `[1]`, `has to be an object, and is a list`},
		{"Preset", `preset: KEP217`, `preset: Unsupported value: "KEP217": supported values: "strict", "kep217"`},
		{"Arithmetic", `arithmetic: Exact`,
			`arithmetic: Unsupported value: "Exact": supported values: "FixedPoint", "Truncating"`},
		{"PodLimits", `podLimits: effective`, `podLimits: Unsupported value: "effective"`},
		{"Aggregate", `aggregate: Unspecified`,
			`aggregate: Unsupported value: "Unspecified": supported values: "WeightedMean", "WeightedSum", "Worst"`},
		{"AbsentResource", `absentResource: Skip`, `absentResource: Unsupported value: "Skip"`},
		{"MissingLimitScope", `missingLimitScope: Pod`, `missingLimitScope: Unsupported value: "Pod"`},
		{"Normalization", `normalization: None`,
			`normalization: Unsupported value: "None": supported values: "MinMax", "Absolute"`},
		{"RatioZero", `maxLimitRatio: 0`, `maxLimitRatio: Invalid value: 0: must be 1 to 1000, or -1 for no bound`},
		{"RatioHuge", `maxLimitRatio: 1001`, `maxLimitRatio: Invalid value: 1001`},
		{"PointsNegative", `blockersTogether: -1`, `blockersTogether: Invalid value: -1: must be 0 to 50`},
		{"PointsHuge", `blockersTogether: 51`, `blockersTogether: Invalid value: 51: must be 0 to 50`},
		{"WeightZero", `resources: [{resource: cpu, weight: 0}]`,
			`resources[0].weight: Invalid value: 0: must be 1 to 100`},
		{"WeightAbsent", `resources: [{resource: cpu}]`, `resources[0].weight: Invalid value: 0: must be 1 to 100`},
		{"WeightHigh", `resources: [{resource: cpu, weight: 101}]`, `resources[0].weight: Invalid value: 101`},
		{"WeightNegative", `resources: [{resource: cpu, weight: -1}]`, `resources[0].weight: Invalid value: -1`},
		{"Twice", `resources: [{resource: cpu, weight: 1}, {resource: cpu, weight: 2}]`,
			`resources[1].resource: Duplicate value: "cpu"`},
		{"SeventeenResources", resources(17), `resources: Too many: 17: must have at most 16 items`},
		{"NoName", `resources: [{weight: 1}]`, `resources[0].resource: Required value`},
		{"UnknownResource", `resources: [{resource: cpus, weight: 1}]`,
			`resources[0].resource: Invalid value: "cpus": unknown resource`},
		{"Pods", `resources: [{resource: pods, weight: 1}]`,
			`resources[0].resource: Invalid value: "pods": unknown resource`},
		{"BadName", `resources: [{resource: "a b/c", weight: 1}]`, `resources[0].resource: Invalid value: "a b/c"`},
		{"RuleWithoutPods", `missingLimits: [{resource: cpu, rule: Zero}]`,
			`missingLimits[0].pods: Required value: one of BestEffort, Others`},
		{"RuleUnknown", `missingLimits: [{pods: Others, resource: cpu, rule: None}]`,
			`missingLimits[0].rule: Unsupported value: "None": supported values: "Zero", "Request", "Allocatable", "Fixed"`},
		{"RuleForOther", `missingLimits: [{pods: Others, resource: ephemeral-storage, rule: Zero}]`,
			`missingLimits[0].resource: Invalid value: "ephemeral-storage": must be one of the policy's resources`},
		{"RuleTwice",
			`missingLimits: [{pods: Others, resource: cpu, rule: Zero}, {pods: Others, resource: cpu, rule: Request}]`,
			`missingLimits[1]: Duplicate value: "Others cpu"`},
		{"FixedWithout", `missingLimits: [{pods: Others, resource: cpu, rule: Fixed}]`,
			`missingLimits[0].fixed: Required value: a quantity`},
		{"FixedWithOther", `missingLimits: [{pods: Others, resource: cpu, rule: Zero, fixed: "1"}]`,
			`missingLimits[0].fixed: Invalid value: "1": goes with rule Fixed only`},
		{"FixedMalformed", `missingLimits: [{pods: Others, resource: cpu, rule: Fixed, fixed: "1Q"}]`,
			`missingLimits[0].fixed: Invalid value: "1Q"`},
		{"FixedNegative", `missingLimits: [{pods: Others, resource: cpu, rule: Fixed, fixed: "-1"}]`,
			`missingLimits[0].fixed: Invalid value: "-1": must not be negative`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("aggregate: Worst"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Load(file)
	if err != nil || p.Aggregate != "Worst" || p.Preset != "strict" {
		t.Errorf("got %+v and error %v", p, err)
	}
	if err := os.WriteFile(file, []byte("aggregate: Nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got error %v, want the name of the file in it", err)
	}
	if _, err := Load(file + ".absent"); !os.IsNotExist(err) {
		t.Errorf("got error %v, want one that the file does not exist", err)
	}
}
