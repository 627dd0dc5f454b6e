package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"loadline.dev/shim/ranking"
)

// Pricing says what nodes cost beside their price lists, and which node suits the cluster; over what a file of kind
// RankPolicy says.
type Pricing struct {
	SpotFactor        float64  `json:"spotFactor" range:"0:1" help:"share of the on-demand price that a spot node costs of which no price list has the spot price; 0: that of --rank-policy, else the factor of a list of GCE, else 0.4"`
	InterruptionRisk  float64  `json:"interruptionRisk" range:"0:<1" help:"share of an hour's work that a spot node loses"`
	InterruptionRisks []string `json:"interruptionRisks" help:"INSTANCE=SHARE: other risks for spot nodes of an instance type or a family, such as m5.large=0.1"`
	NodeSurcharge     float64  `json:"nodeSurcharge" range:"0:" help:"what each node costs on top, in US dollars per hour"`
	Commitments       []string `json:"commitments" flag:"commitment" help:"INSTANCE=CPUS that are paid for and no node uses yet: of an instance type, a family, or with nothing before = of any on-demand node; only where groups are ranked"`
	PreferredTable    string   `json:"preferredTable" help:"how the node that suits the cluster is found: cluster-autoscaler, proposal or learned; only where groups are ranked"`
	PreferredNode     string   `json:"preferredNode" help:"CPU:MEMORY of that node, such as 8:32Gi, in place of a table; only where groups are ranked"`
}

func (p *Pricing) check() error {
	if p.PreferredTable != "" {
		if err := oneOf("scaleUp.pricing.preferredTable", p.PreferredTable, ranking.PreferredTables()); err != nil {
			return err
		}
	}
	return p.applyTo(ranking.Default(), true)
}

func (p *Pricing) interruptionRisks() (map[string]float64, error) {
	risks := map[string]float64{}
	for _, entry := range p.InterruptionRisks {
		instance, share, _ := strings.Cut(entry, "=")
		risk, err := strconv.ParseFloat(share, 64)
		if instance == "" || err != nil || !(risk >= 0 && risk < 1) {
			return nil, fmt.Errorf("scaleUp.pricing.interruptionRisks: %q: must be INSTANCE=SHARE, such as m5.large=0.1",
				entry)
		}
		if _, twice := risks[instance]; twice {
			return nil, fmt.Errorf("scaleUp.pricing.interruptionRisks: %s occurs twice", instance)
		}
		risks[instance] = risk
	}
	return risks, nil
}

func (p *Pricing) commitments() ([]ranking.Commitment, error) {
	return readEach("scaleUp.pricing.commitments", p.Commitments, func(entry string) (ranking.Commitment, error) {
		instance, cpus, _ := strings.Cut(entry, "=")
		unused, err := resource.ParseQuantity(cpus)
		if err != nil || unused.Sign() < 0 {
			return ranking.Commitment{}, fmt.Errorf("%q: must be INSTANCE=CPUS", entry)
		}
		return ranking.Commitment{Instance: instance, UnusedCPU: unused}, nil
	})
}

func (p *Pricing) preferredNode() (*ranking.Node, error) {
	if p.PreferredNode == "" {
		return nil, nil
	}
	cpu, memory, _ := strings.Cut(p.PreferredNode, ":")
	node := &ranking.Node{}
	var err1, err2 error
	node.CPU, err1 = resource.ParseQuantity(cpu)
	if memory != "" {
		node.Memory, err2 = resource.ParseQuantity(memory)
	}
	if err1 != nil || err2 != nil || node.CPU.Sign() <= 0 || node.Memory.Sign() < 0 {
		return nil, fmt.Errorf("scaleUp.pricing.preferredNode: %q: must be CPU:MEMORY, such as 8:32Gi", p.PreferredNode)
	}
	return node, nil
}

// applyTo writes what is set into a policy. What only a ranking reads is refused where groups are not ranked: it would
// be without effect.
func (p *Pricing) applyTo(policy *ranking.Policy, ranks bool) error {
	if !ranks && (len(p.Commitments) > 0 || p.PreferredTable != "" || p.PreferredNode != "") {
		return errors.New("scaleUp.pricing: commitments, preferredTable and preferredNode have no effect where groups " +
			"are not ranked: name strategies, a rankPreset or a rankPolicy")
	}
	risks, err1 := p.interruptionRisks()
	commitments, err2 := p.commitments()
	node, err3 := p.preferredNode()
	if err := cmp.Or(err1, err2, err3); err != nil {
		return err
	}
	if p.SpotFactor > 0 {
		policy.Prices.SpotFactor = &p.SpotFactor
	}
	if p.InterruptionRisk > 0 {
		policy.Prices.InterruptionRisk = p.InterruptionRisk
	}
	if len(risks) > 0 {
		policy.Prices.InterruptionRisks = risks
	}
	if p.NodeSurcharge > 0 {
		policy.Prices.NodeSurcharge = p.NodeSurcharge
	}
	if len(commitments) > 0 {
		policy.Prices.Commitments = commitments
	}
	if node != nil {
		policy.PreferredNode = node
	}
	if p.PreferredTable != "" {
		policy.PreferredTable = p.PreferredTable
		policy.PreferredNode = node // a file's node would take its place
	}
	return nil
}

func (s *Balancing) check() error {
	if len(s.BalancingLabels) > 0 && len(s.BalancingIgnoreLabels) > 0 {
		return errors.New("scaleUp.balancingLabels: decide alone, so that balancingIgnoreLabels have no effect")
	}
	if slices.Contains(s.BalancingLabels, "") {
		return errors.New("scaleUp.balancingLabels: no label may be empty")
	}
	if slices.Contains(s.BalancingIgnoreLabels, "") {
		return errors.New("scaleUp.balancingIgnoreLabels: no label may be empty")
	}
	return nil
}
