package ranking

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
)

const head = "apiVersion: loadline.dev/v1alpha1\nkind: RankPolicy\n"

func TestPolicyFileReachesTheEngine(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("own.csv", "instance_type,on_demand_usd_per_hour\nx,1\n")
	p, err := Load(write("policy.yaml", head+`
preset: proposal
strategies: [price, least-waste, most-pods, least-nodes, priority]
damper: 0.016
podRates: {cpu: 0.03, memoryGiB: 0, gpu: 0.7, ephemeralGiB: 0.1, ephemeralFlat: 0.01}
suppressionDivisor: 7.5
gpuUnfitness: 0
gpuUnfitnessIfUnneeded: true
creationFactor: 1.5
countPreferredNodes: true
preferredTable: learned
preferredNode: {cpu: 7500m, memory: 30Gi}
unfitnessResources: cpu-and-memory
prices:
  catalogues: [own.csv]
  baseRates: {cpu: 0.02}
  lastSource: family
  spotFactor: 0.3
  interruptionRisk: 0.05
  nodeSurcharge: 0.015
  commitments:
  - {instance: n2, unusedCPU: "16"}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &loadlinev1.RankPolicy{
		Preset: loadlinev1.RankPolicy_PROPOSAL,
		Strategies: []loadlinev1.RankPolicy_Strategy{loadlinev1.RankPolicy_PRICE, loadlinev1.RankPolicy_LEAST_WASTE,
			loadlinev1.RankPolicy_MOST_PODS, loadlinev1.RankPolicy_LEAST_NODES, loadlinev1.RankPolicy_PRIORITY},
		DamperUsdPerHour: proto.Float64(0.016),
		PodRates: &loadlinev1.ResourceRates{CpuUsdPerHour: proto.Float64(0.03), MemoryGibUsdPerHour: proto.Float64(0),
			GpuUsdPerHour: proto.Float64(0.7), EphemeralGibUsdPerHour: proto.Float64(0.1),
			EphemeralFlatUsdPerHour: proto.Float64(0.01)},
		SuppressionDivisor: proto.Float64(7.5), GpuUnfitness: proto.Float64(0), GpuUnfitnessIfUnneeded: true,
		CreationFactor: proto.Float64(1.5), CountPreferredNodes: true, PreferredTable: loadlinev1.RankPolicy_LEARNED,
		PreferredNode:      &loadlinev1.PreferredNode{MilliCpu: 7500, MemoryBytes: 30 << 30},
		UnfitnessResources: loadlinev1.RankPolicy_CPU_AND_MEMORY,
	}
	if got := p.Proto(); !proto.Equal(got, want) {
		t.Errorf("policy %v, want %v", got, want)
	}
	wantPrices := &loadlinev1.PriceModel{
		Catalogues: []*loadlinev1.PriceCatalogue{
			{Name: "own.csv", Csv: []byte("instance_type,on_demand_usd_per_hour\nx,1\n")}},
		BaseRates:  &loadlinev1.ResourceRates{CpuUsdPerHour: proto.Float64(0.02)},
		LastSource: loadlinev1.NodePrice_FAMILY,
		SpotFactor: proto.Float64(0.3), InterruptionRisk: 0.05, NodeSurchargeUsdPerHour: 0.015,
		Commitments: []*loadlinev1.Commitment{{Instance: "n2", UnusedMilliCpu: 16000}},
	}
	if got := p.PriceModel(); !proto.Equal(got, wantPrices) {
		t.Errorf("prices %v, want %v", got, wantPrices)
	}
}

func TestEmptyPolicyIsTheDefaultPreset(t *testing.T) {
	p, err := parse([]byte(head))
	if err != nil {
		t.Fatal(err)
	}
	want := &loadlinev1.RankPolicy{Preset: loadlinev1.RankPolicy_CLUSTER_AUTOSCALER}
	for name, got := range map[string]*Policy{"empty file": p, "no file": Default()} {
		if !proto.Equal(got.Proto(), want) || !proto.Equal(got.PriceModel(), &loadlinev1.PriceModel{}) {
			t.Errorf("%s: %v, %v", name, got.Proto(), got.PriceModel())
		}
	}
}

func TestPolicyFilesThatAreWrong(t *testing.T) {
	for text, says := range map[string]string{
		"preset: proposal":         `apiVersion "", kind ""`,
		head + "presets: proposal": `unknown field "presets"`,
		head + "preset: kep217": `preset: Unsupported value: "kep217": supported values: ` +
			`"cluster-autoscaler", "proposal"`,
		head + "strategies: [price, cheapest]":  "strategies[1]: Unsupported value",
		head + `strategies: [""]`:               "strategies[0]: Required value",
		head + "preferredTable: table-proposal": "preferredTable: Unsupported value",
		head + "unfitnessResources: memory":     "unfitnessResources: Unsupported value",
		head + "prices: {lastSource: invoice}":  "prices.lastSource: Unsupported value",
		head + "prices: {spotfactor: 1}":        `unknown field "prices.spotfactor"`,
		head + `priorities: {10: ["("]}`:        "priorities[10]",
		head + "preferredNode: {cpu: many}":     "quantities must match",
		head + "damper: 1\ndamper: 2":           "damper",
		head + "damper: .nan":                   "",
		head + "podRates: {cpu: cheap}":         "podRates.cpu",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(head+"prices: {catalogues: [absent.csv]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "absent.csv")) {
		t.Errorf("a catalogue that is not there: %v", err)
	}
	if err := os.WriteFile(file, []byte(head+"preset: x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("the error does not name the file: %v", err)
	}
}

// Same rules as Cluster Autoscaler's priority expander: patterns match anywhere, the highest priority counts.
func TestPriorities(t *testing.T) {
	p, err := parse([]byte(head + `priorities: {10: [".*"], 50: ["spot", "^m5"], 30: ["spot-large"]}`))
	if err != nil {
		t.Fatal(err)
	}
	m := p.Matcher()
	for group, want := range map[string]int64{"any": 10, "a-spot-large": 50, "m5-2": 50, "x-m5": 10} {
		if got := m.Of(group); got == nil || *got != want {
			t.Errorf("%s: %v, want %d", group, got, want)
		}
	}
	if got := Default().Matcher().Of("any"); got != nil {
		t.Errorf("without patterns: %d", *got)
	}
	only, err := parse([]byte(head + `priorities: {-5: ["spot"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := only.Matcher(); got.Of("other") != nil || got.Of("spot") == nil || *got.Of("spot") != -5 {
		t.Errorf("of other %v, of spot %v", got.Of("other"), got.Of("spot"))
	}
}
