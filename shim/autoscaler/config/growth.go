package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/slack"
)

// ScaleUp says which node groups grow, and what happens when nodes do not come.
type ScaleUp struct {
	NewNodes                `json:",inline"`
	scaleup.StartupTaints   `json:",inline"`
	WaitingPods             `json:",inline"`
	GroupChoice             `json:",inline"`
	Balancing               `json:",inline"`
	EnforceNodeGroupMinSize bool    `json:"enforceNodeGroupMinSize" help:"groups with fewer nodes than their minimum grow to it"`
	PlanWaitingPodsAlone    bool    `json:"planWaitingPodsAlone" help:"groups grow by the cheapest nodes for the pods that wait alone; without it, a node that takes all of them may be larger, where it costs less per pod once further ones like them come"`
	CapacityQuotas          bool    `json:"capacityQuotas" flag:"capacity-quotas-enabled" help:"CapacityQuotas bound what the nodes that they select offer, beside maxNodesTotal, coresTotal, memoryTotal and gpuTotal; until they could be read no group grows"`
	ForceDaemonSets         bool    `json:"forceDaemonSets" flag:"force-ds" help:"groups whose new nodes have no room for all pods of DaemonSets that belong there do not grow"`
	SwapNotBegun            bool    `json:"swapNotBegun" help:"nodes that the cloud has not begun to make are taken back where a cheaper mix takes the same pods and those that have come since"`
	Pricing                 Pricing `json:"pricing"`
}

// NewNodes says how many nodes come, how long they may take, and what happens when they do not come.
type NewNodes struct {
	MaxNodesTotal                   int      `json:"maxNodesTotal" range:"0:1073741824" help:"nodes that the cluster may have in all, those on their way included; 0: no limit"`
	MaxNodesPerScaleUp              int      `json:"maxNodesPerScaleup" range:"0:1073741824" help:"nodes that are added in one loop: of groups that are sized first, then for pods, then for slack"`
	MaxNodeProvisionTime            Duration `json:"maxNodeProvisionTime" range:"1ns:1000h" help:"how long a node may take to register; then it is given up, and its group backs off"`
	MaxNodeStartupTime              Duration `json:"maxNodeStartupTime" help:"how long a node that has registered may take to become ready and is on its way"`
	InitialNodeGroupBackoffDuration Duration `json:"initialNodeGroupBackoffDuration" range:"1ns:1000h" help:"how long a group does not grow after a failure"`
	MaxNodeGroupBackoffDuration     Duration `json:"maxNodeGroupBackoffDuration" help:"to which that doubles with each further one"`
	NodeGroupBackoffResetTimeout    Duration `json:"nodeGroupBackoffResetTimeout" help:"after which failures are forgotten"`
}

// WaitingPods says which pods make groups grow, and when.
type WaitingPods struct {
	NewPodScaleUpDelay           Duration `json:"newPodScaleUpDelay" help:"younger pods make no group grow; a pod's annotation cluster-autoscaler.kubernetes.io/pod-scale-up-delay overrides it"`
	BatchIdle                    Duration `json:"batchIdle" help:"groups grow when no pod has come for so long that needs a node which is not there yet: pods that come together are planned for together; 0: at once"`
	BatchMax                     Duration `json:"batchMax" range:"0s:1h" help:"how long growth waits for that at most"`
	ExpendablePodsPriorityCutoff int      `json:"expendablePodsPriorityCutoff" range:"-10:2147483647" help:"pods of a lower priority make no group grow; at least -10"`
	BypassedSchedulerNames       []string `json:"bypassedSchedulerNames" range:":1000" help:"schedulers whose pods count as waiting before they have been tried"`
	AllowedSchedulerNames        []string `json:"allowedSchedulerNames" range:":1000" help:"schedulers whose pods make groups grow; empty: all do"`
}

// GroupChoice says which of the groups grows that could.
type GroupChoice struct {
	Prices            []string `json:"prices" help:"price lists, CSV or CSV.gz files, for groups whose price the provider does not state; without any, and without those of rankPolicy, the built-in lists: AWS in us-east-1, Azure, GCE in us-central1"`
	BaseRatePrices    bool     `json:"baseRatePrices" help:"a group that no price list knows is priced by cpu, memory and GPUs; without it, it does not grow"`
	RankPolicy        string   `json:"rankPolicy" flag:"rank-policy" help:"file of kind RankPolicy: the one group grows that ranks best by it, as with Cluster Autoscaler's expanders; its prices hold too. Without a policy, a preset and strategies groups grow together, by the cheapest plan"`
	RankPreset        string   `json:"rankPreset" flag:"rank-preset" help:"bundle of settings of such a policy: cluster-autoscaler or proposal"`
	Strategies        []string `json:"strategies" help:"what decides between node groups, one after the other: price, least-waste, most-pods, least-nodes, priority, joint"`
	USDPerFurtherType float64  `json:"usdPerFurtherType" flag:"usd-per-further-type" range:"0:" help:"what each further type of new nodes counts as, in US dollars per hour"`
}

// Balancing says which groups are alike, and whether they share what they grow by.
type Balancing struct {
	BalanceSimilarNodeGroups      bool     `json:"balanceSimilarNodeGroups" help:"groups whose nodes are alike but for their zone share what they grow by for pods, by their size"`
	BalancingIgnoreLabels         []string `json:"balancingIgnoreLabels" flag:"balancing-ignore-label" range:":100" help:"a label that may differ too; may be given more than once"`
	BalancingLabels               []string `json:"balancingLabels" flag:"balancing-label" range:":100" help:"a label: groups are alike whose nodes carry all such labels with equal values, whatever else differs; may be given more than once"`
	MaxAllocatableDifferenceRatio float64  `json:"maxAllocatableDifferenceRatio" range:"0:1" help:"by how much allocatable amounts of groups that are alike differ at most, as a share of the larger one"`
	MemoryDifferenceRatio         float64  `json:"memoryDifferenceRatio" range:"0:1" help:"the same for the capacity of memory"`
}

// Sizing says which groups are sized by how full they are, in place of all else.
type Sizing struct {
	NodeGroups string `json:"nodeGroups" flag:"sized-node-groups" help:"file of node groups that grow and shrink by utilisation alone: documents of kind NodeGroup with spec.size, or Escalator's node_groups"`
}

// Load reads the file, and returns the groups that are sized.
func (s *Sizing) Load() (groups []nodegroup.NodeGroup, warnings []string, err error) {
	if s.NodeGroups == "" {
		return nil, nil, nil
	}
	file, err := nodegroup.Load(s.NodeGroups)
	if err != nil {
		return nil, nil, fmt.Errorf("sizing.nodeGroups: %w", err)
	}
	byCloud := map[string]string{}
	for i := range file.Groups {
		g := &file.Groups[i]
		if g.Spec.Size == nil {
			file.Warnings = append(file.Warnings,
				fmt.Sprintf("node group %q: has no spec.size and plays no part in sizing", g.Name()))
			continue
		}
		if g.Spec.Size.TaintEffect == v1.TaintEffectNoExecute {
			return nil, nil, fmt.Errorf("sizing.nodeGroups: %s: node group %q: taint effect NoExecute has Kubernetes "+
				"delete the pods of a node at once, whatever their disruption budgets say: NoSchedule, the default, "+
				"has them evicted", s.NodeGroups, g.Name())
		}
		if other, twice := byCloud[g.CloudGroup()]; twice {
			return nil, nil, fmt.Errorf("sizing.nodeGroups: %s: node groups %q and %q are both group %q at the cloud",
				s.NodeGroups, other, g.Name(), g.CloudGroup())
		}
		byCloud[g.CloudGroup()] = g.Name()
		groups = append(groups, *g)
	}
	if len(groups) == 0 {
		return nil, nil, fmt.Errorf("sizing.nodeGroups: %s: no node group says how it is sized: spec.size is missing",
			s.NodeGroups)
	}
	return groups, append(file.Warnings, file.Ignored()...), nil
}

func defaultScaleUp() ScaleUp {
	return ScaleUp{
		NewNodes: NewNodes{MaxNodesPerScaleUp: 1000, MaxNodeProvisionTime: duration(15 * time.Minute),
			MaxNodeStartupTime:              duration(scaleup.DefaultMaxNodeStartupTime),
			InitialNodeGroupBackoffDuration: duration(5 * time.Minute),
			MaxNodeGroupBackoffDuration:     duration(30 * time.Minute),
			NodeGroupBackoffResetTimeout:    duration(3 * time.Hour)},
		WaitingPods: WaitingPods{BatchIdle: duration(time.Second), BatchMax: duration(10 * time.Second),
			ExpendablePodsPriorityCutoff: -10},
		GroupChoice:  GroupChoice{BaseRatePrices: true},
		Balancing:    Balancing{MaxAllocatableDifferenceRatio: 0.05, MemoryDifferenceRatio: 0.015},
		SwapNotBegun: true}
}

func (s *ScaleUp) check() error {
	if s.BatchMax.Duration < s.BatchIdle.Duration {
		return fmt.Errorf("scaleUp.batchMax: %v must not be below batchIdle", s.BatchMax.Duration)
	}
	if s.MaxNodeGroupBackoffDuration.Duration < s.InitialNodeGroupBackoffDuration.Duration {
		return errors.New("scaleUp.maxNodeGroupBackoffDuration: must not be below initialNodeGroupBackoffDuration")
	}
	for path, names := range map[string][]string{"bypassed": s.BypassedSchedulerNames,
		"allowed": s.AllowedSchedulerNames} {
		if err := checkSchedulers("scaleUp."+path+"SchedulerNames", names); err != nil {
			return err
		}
	}
	for _, name := range s.BypassedSchedulerNames {
		if !s.Allows(name) {
			return fmt.Errorf("scaleUp.bypassedSchedulerNames: %q is not among allowedSchedulerNames", name)
		}
	}
	if err := s.StartupTaints.Check(); err != nil {
		return fmt.Errorf("scaleUp.%w", err)
	}
	return cmp.Or(s.Balancing.check(), s.Pricing.check(), s.GroupChoice.check())
}

// Allows says whether pods of a scheduler make groups grow.
func (s *WaitingPods) Allows(scheduler string) bool {
	return len(s.AllowedSchedulerNames) == 0 || slices.Contains(s.AllowedSchedulerNames, scheduler)
}

func checkSchedulers(path string, names []string) error {
	for _, name := range names {
		if name == "" || len(name) > 253 || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return fmt.Errorf("%s: %q is not a name", path, name)
		}
	}
	return nil
}

// check finds what is wrong without the files of a ranking.
func (s *GroupChoice) check() error {
	if s.RankPreset != "" {
		if err := oneOf("scaleUp.rankPreset", s.RankPreset, ranking.Presets()); err != nil {
			return err
		}
	}
	for _, strategy := range s.Strategies {
		if err := oneOf("scaleUp.strategies", strategy, ranking.Strategies()); err != nil {
			return err
		}
	}
	return nil
}

// Ranking returns the policy by which node groups are ranked, with the price lists that hold, and whether they are
// ranked at all.
func (s *ScaleUp) Ranking() (policy *ranking.Policy, ranks bool, err error) {
	ranks = s.RankPolicy != "" || s.RankPreset != "" || len(s.Strategies) > 0
	policy, err = s.ranking(ranks)
	return policy, ranks, err
}

// FollowsPriorities says whether the priorities of node groups are those of Cluster Autoscaler's ConfigMap: a strategy
// reads them, and no file states any.
func (s *ScaleUp) FollowsPriorities() bool {
	return s.RankPolicy == "" && slices.Contains(s.Strategies, "priority")
}

// Rank returns the policy by which node groups are ranked that are to be ranked in any case.
func (s *ScaleUp) Rank() (*ranking.Policy, error) { return s.ranking(true) }

func (s *ScaleUp) ranking(ranks bool) (policy *ranking.Policy, err error) {
	policy = ranking.Default()
	if s.RankPolicy != "" {
		if policy, err = ranking.Load(s.RankPolicy); err != nil {
			return nil, fmt.Errorf("scaleUp.rankPolicy: %w", err)
		}
	}
	if s.RankPreset != "" {
		policy.Preset = s.RankPreset
	}
	if len(s.Strategies) > 0 {
		policy.Strategies = s.Strategies
	}
	if err := s.Pricing.applyTo(policy, ranks); err != nil {
		return nil, err
	}
	if err := policy.Validate(); err != nil {
		return nil, fmt.Errorf("scaleUp: %w", err)
	}
	for _, name := range s.Prices {
		if err := policy.AddCatalogue(name); err != nil {
			return nil, err
		}
	}
	return policy, policy.AddDefaultCatalogues()
}

// PriceModel returns what nodes cost by a policy.
func (s *ScaleUp) PriceModel(policy *ranking.Policy) *loadlinev1.PriceModel {
	prices := policy.PriceModel()
	if !s.BaseRatePrices {
		prices.LastSource = loadlinev1.NodePrice_FAMILY
	}
	return prices
}

// How slack is kept in mode act.
const (
	SlackDeployments     = "deployments"
	SlackCapacityBuffers = "capacitybuffers"
	SlackReport          = "report"
)

// Slack says how much room is kept free for pods to come, and how.
type Slack struct {
	slack.Policy    `json:",inline"`
	RemovalDelay    Duration `json:"removalDelay" flag:"slack-removal-delay" help:"how long pieces that are no longer wanted stay"`
	Keep            string   `json:"keep" flag:"slack-keep" help:"in mode act: deployments of pods that give way to all others, capacitybuffers for an autoscaler that knows them, or report: nothing is written"`
	Namespace       string   `json:"namespace" flag:"slack-namespace" help:"namespace of these objects; it must be there, and loadlined must be told of another one than the default"`
	CapacityBuffers bool     `json:"capacityBuffers" flag:"capacity-buffer-controller-enabled" help:"keep the room that CapacityBuffers of others request, except in namespaces whose label loadline.dev/slack-copies has another value than allowed, and write the result to their status"`
}

// Proto returns the policy with all that the engine reads of these settings.
func (s *Slack) Proto() (*loadlinev1.SlackPolicy, error) {
	policy, err := s.Policy.Proto()
	if err == nil {
		policy.RemovalDelaySeconds = new(int32(s.RemovalDelay.Seconds()))
	}
	return policy, err
}

func defaultSlack() Slack {
	return Slack{Policy: slack.DefaultPolicy(), RemovalDelay: duration(10 * time.Minute), Keep: SlackDeployments,
		Namespace: slack.DefaultNamespace}
}

func (s *Slack) check() error {
	proto, err := s.Proto()
	if err != nil {
		return fmt.Errorf("slack.%w", err)
	}
	rate, tolerance := proto.GetExtraCapacityMinRate(), proto.GetSizeTolerance()
	if err := cmp.Or(inRange("slack.extraCapacityMinRate", rate, "0:1000"),
		inRange("slack.sizeTolerance", tolerance, "0:1000")); err != nil {
		return err
	}
	switch {
	case s.Basis == "capacity" && rate >= 1:
		return fmt.Errorf("slack.extraCapacityMinRate %q: of basis capacity it must be below 1, or no cluster is "+
			"ever large enough", s.ExtraCapacityMinRate)
	case s.Keep != SlackDeployments && s.Keep != SlackCapacityBuffers && s.Keep != SlackReport:
		return fmt.Errorf("slack.keep %q: must be %s, %s or %s", s.Keep, SlackDeployments, SlackCapacityBuffers,
			SlackReport)
	case s.CapacityBuffers && s.Keep == SlackCapacityBuffers:
		return fmt.Errorf("slack.capacityBuffers: with slack.keep %s another autoscaler keeps CapacityBuffers, ours and "+
			"those of others", SlackCapacityBuffers)
	case len(validation.IsDNS1123Label(s.Namespace)) > 0:
		return fmt.Errorf("slack.namespace %q: is not the name of a namespace", s.Namespace)
	}
	return nil
}
