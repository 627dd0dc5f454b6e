// Package ranking holds what a ranking of node groups needs beside the options: the policy and the prices as people
// write them, and the words that tell how an option came to its place.
//
// It names settings and checks their form; what they mean, and what a preset sets, the engine knows.
package ranking

import (
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/unwrap"
	"loadline.dev/shim/policy"
)

// The version and the kind that a policy file states.
const (
	APIVersion = "loadline.dev/v1alpha1"
	Kind       = "RankPolicy"
)

// DefaultPreset is taken where no preset is named.
const DefaultPreset = "cluster-autoscaler"

// Policy is a way to rank. What is absent is as the preset sets it. Amounts of money are US dollars per hour.
type Policy struct {
	metav1.TypeMeta `json:",inline"`
	// Preset is a bundle of all settings below: cluster-autoscaler or proposal. Default: cluster-autoscaler.
	Preset string `json:"preset,omitempty"`
	// Strategies decide one after the other: price, least-waste, most-pods, least-nodes, priority, joint; each at most
	// once. Default: price.
	Strategies []string `json:"strategies,omitempty"`
	// Priorities maps a priority to patterns of node groups, as Cluster Autoscaler's priority expander has them. Of
	// several that match, the highest counts. Default: none.
	Priorities map[int64][]string `json:"priorities,omitempty"`
	// Damper is X of the formula. Default: what the pod of the preset costs at podRates.
	Damper *float64 `json:"damper,omitempty"`
	// PodRates are what pods would cost on machines that suit them perfectly. Default: those of the preset.
	PodRates *Rates `json:"podRates,omitempty"`
	// SuppressionDivisor divides the number of nodes in the suppression of unfitness; above 0. Default: that of the
	// preset.
	SuppressionDivisor *float64 `json:"suppressionDivisor,omitempty"`
	// GPUUnfitness takes the place of the suppressed unfitness of nodes with GPUs, at least 1; 0: nothing does. Default:
	// that of the preset.
	GPUUnfitness *float64 `json:"gpuUnfitness,omitempty"`
	// GPUUnfitnessIfUnneeded lets gpuUnfitness hold only where no pod of the option asks for a GPU.
	GPUUnfitnessIfUnneeded bool `json:"gpuUnfitnessIfUnneeded,omitempty"`
	// CreationFactor multiplies the score of a group that does not exist yet; at least 1. Default: that of the preset.
	CreationFactor *float64 `json:"creationFactor,omitempty"`
	// CountPreferredNodes counts nodes for the suppression in units of the preferred node.
	CountPreferredNodes bool `json:"countPreferredNodes,omitempty"`
	// PreferredTable is cluster-autoscaler, proposal or learned. Default: that of the preset.
	PreferredTable string `json:"preferredTable,omitempty"`
	// PreferredNode is the preferred node itself, in place of a table. Default: by preferredTable.
	PreferredNode *Node `json:"preferredNode,omitempty"`
	// UnfitnessResources is cpu or cpu-and-memory. Default: cpu.
	UnfitnessResources string `json:"unfitnessResources,omitempty"`
	// Prices say what nodes cost.
	Prices Prices `json:"prices,omitempty"`
}

// Rates are prices of single resources.
type Rates struct {
	// CPU is the price of one CPU. Default: 0.033174.
	CPU *float64 `json:"cpu,omitempty"`
	// MemoryGiB is the price of one GiB of memory. Default: 0.004446.
	MemoryGiB *float64 `json:"memoryGiB,omitempty"`
	// GPU is the price of one GPU. Default: 0.70.
	GPU *float64 `json:"gpu,omitempty"`
	// EphemeralGiB is the price of one GiB of ephemeral storage. Default: 0.10 / 720; for pods with preset proposal 0.
	EphemeralGiB *float64 `json:"ephemeralGiB,omitempty"`
	// EphemeralFlat is what a pod costs on top that requests any ephemeral storage. Nodes do not have it. Default: 0;
	// with preset proposal 0.01.
	EphemeralFlat *float64 `json:"ephemeralFlat,omitempty"`
}

// Node is the size of a node.
type Node struct {
	// CPU is how much CPU it has. Required.
	CPU resource.Quantity `json:"cpu"`
	// Memory is how much memory it has. Default: 0.
	Memory resource.Quantity `json:"memory,omitempty"`
}

// Prices say what nodes cost.
type Prices struct {
	// Catalogues are price lists, CSV files, asked in this order. A relative name counts from the policy file.
	// Default: those that are built in; [] is none.
	Catalogues []string `json:"catalogues,omitempty"`
	// BaseRates price a node of which nothing else is known. Default: those of the first catalogue that has some, else
	// as below.
	BaseRates *Rates `json:"baseRates,omitempty"`
	// LastSource is the last source that may give a price: given, node-annotation, instance-type, family, base-rates.
	// Default: base-rates.
	LastSource string `json:"lastSource,omitempty"`
	// SpotFactor is the share of the on-demand price, (0, 1], that a spot node costs of which no catalogue has the spot
	// price. Default: the factor of a catalogue of GCE, else 0.4, an average.
	SpotFactor *float64 `json:"spotFactor,omitempty"`
	// InterruptionRisk is the share of an hour's work, [0, 1), that a spot node loses. Default: 0.
	InterruptionRisk float64 `json:"interruptionRisk,omitempty"`
	// InterruptionRisks are others for spot nodes of an instance type or a family. Default: none.
	InterruptionRisks map[string]float64 `json:"interruptionRisks,omitempty"`
	// NodeSurcharge is what each node costs on top. Default: 0.
	NodeSurcharge float64 `json:"nodeSurcharge,omitempty"`
	// Commitments are CPUs that are paid for already: nodes that use them cost nothing for that part. Default: none.
	Commitments []Commitment `json:"commitments,omitempty"`

	lists []*loadlinev1.PriceCatalogue
}

// Commitment is capacity that is paid for whether it is used or not.
type Commitment struct {
	// Instance is an instance type or a family. Default: any on-demand node.
	Instance string `json:"instance,omitempty"`
	// UnusedCPU is how much of it no node uses yet. Required.
	UnusedCPU resource.Quantity `json:"unusedCPU"`
}

var (
	presets    = policy.NewChoice(loadlinev1.RankPolicy_PRESET_UNSPECIFIED, kebab)
	strategies = policy.NewChoice(loadlinev1.RankPolicy_STRATEGY_UNSPECIFIED, kebab)
	tables     = policy.NewChoice(loadlinev1.RankPolicy_PREFERRED_TABLE_UNSPECIFIED, kebab)
	unfitness  = policy.NewChoice(loadlinev1.RankPolicy_UNFITNESS_RESOURCES_UNSPECIFIED, kebab)
	sources    = policy.NewChoice(loadlinev1.NodePrice_SOURCE_UNSPECIFIED, kebab)
)

// Presets returns the words for presets, Strategies those for strategies, and PreferredTables those for tables of
// preferred nodes.
func Presets() []string         { return presets.Words() }
func Strategies() []string      { return strategies.Words() }
func PreferredTables() []string { return tables.Words() }

// kebab makes least-waste of LEAST_WASTE, as Cluster Autoscaler writes its expanders, and proposal of TABLE_PROPOSAL.
func kebab(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "TABLE_"), "_", "-"))
}

// ReadsPods says whether the preferred node is learned from the pods of the cluster.
func (p *Policy) ReadsPods() bool {
	return p.PreferredNode == nil && tables.Number(p.PreferredTable) == loadlinev1.RankPolicy_LEARNED.Number()
}

// Default returns the policy that holds where none is given.
func Default() *Policy {
	return &Policy{Preset: DefaultPreset}
}

// Load reads a policy from a YAML or JSON file, with the catalogues that it names.
func Load(file string) (*Policy, error) {
	data, err := unwrap.File(file, unwrap.MostBytes)
	if err != nil {
		return nil, err
	}
	p, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, p.addCatalogues(filepath.Dir(file))
}

// addCatalogues reads the price lists that the policy names. Relative names count from `dir`.
func (p *Policy) addCatalogues(dir string) error {
	for _, name := range p.Prices.Catalogues {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if err := p.AddCatalogue(name); err != nil {
			return err
		}
	}
	return nil
}

// parse reads a policy without its catalogues.
func parse(data []byte) (*Policy, error) {
	p := &Policy{}
	if err := policy.DecodeStrict(data, p); err != nil {
		return nil, err
	}
	if p.APIVersion != APIVersion || p.Kind != Kind {
		return nil, fmt.Errorf("apiVersion %q, kind %q: must be %s, %s", p.APIVersion, p.Kind, APIVersion, Kind)
	}
	p.defaults()
	return p, p.Validate()
}

func (p *Policy) defaults() {
	if p.Preset == "" {
		p.Preset = DefaultPreset
	}
}

// AddCatalogue reads a price list, to be asked after those that are there.
func (p *Policy) AddCatalogue(file string) error {
	data, err := unwrap.File(file, mostListBytes)
	if err != nil {
		return err
	}
	p.addList(filepath.Base(file), data)
	return nil
}

// Validate returns an error that names each word that is none and its place. What numbers may be, the engine knows.
func (p *Policy) Validate() error {
	if err := p.checkWords(); err != nil {
		return err
	}
	_, err := PrioritiesOf(p.Priorities)
	return err
}
