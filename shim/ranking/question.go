package ranking

import (
	"errors"
	"fmt"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/unwrap"
	"loadline.dev/shim/policy"
	"loadline.dev/shim/view"
)

// QuestionKind is what a file says it is that holds options to be ranked as they stand there.
const QuestionKind = "RankQuestion"

// Question is a ranking to be made of options that are given, as against worked out from a cluster.
type Question struct {
	metav1.TypeMeta `json:",inline"`
	// Policy says how to rank, and what nodes cost where an option does not say it.
	Policy Policy `json:"policy,omitempty"`
	// ClusterNodes is how many nodes the cluster has. Absent: not known.
	ClusterNodes *int32 `json:"clusterNodes,omitempty"`
	// Running is what the pods of the cluster request, for the preferred table learned.
	Running *Running `json:"running,omitempty"`
	// Options are what can be done.
	Options []Option `json:"options"`
}

// Option is a node group, how far it would grow, and what that is good for.
type Option struct {
	NodeGroup string `json:"nodeGroup"`
	NodeCount int32  `json:"nodeCount"`
	// Template is a node as the group makes them.
	Template *v1.Node `json:"template,omitempty"`
	// NodePrice is what one node costs. Absent: what the policy's prices say.
	NodePrice *float64 `json:"nodePrice,omitempty"`
	// InstanceType names the machine in a price list. Empty: the template's label.
	InstanceType string `json:"instanceType,omitempty"`
	// Spot: its nodes are spot or preemptible ones. Absent: what the template's labels say.
	Spot *bool `json:"spot,omitempty"`
	// ToBeCreated: the group does not exist yet.
	ToBeCreated bool `json:"toBeCreated,omitempty"`
	// Pods are those that the nodes take.
	Pods []Pods `json:"pods"`
}

// Pods are equal pods.
type Pods struct {
	Count    int32           `json:"count"`
	Requests v1.ResourceList `json:"requests"`
}

// LoadQuestion reads a question from a YAML or JSON file, with the price lists that it names, or those that
// are built in.
func LoadQuestion(file string) (*Question, error) {
	data, err := unwrap.File(file, unwrap.MostBytes)
	if err != nil {
		return nil, err
	}
	q, err := parseQuestion(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := q.Policy.addCatalogues(filepath.Dir(file)); err != nil {
		return nil, err
	}
	return q, q.Policy.AddDefaultCatalogues()
}

func parseQuestion(data []byte) (*Question, error) {
	q := &Question{}
	if err := policy.DecodeStrict(data, q); err != nil {
		return nil, err
	}
	if q.APIVersion != APIVersion || q.Kind != QuestionKind {
		return nil, fmt.Errorf("apiVersion %q, kind %q: must be %s, %s", q.APIVersion, q.Kind, APIVersion, QuestionKind)
	}
	if len(q.Options) == 0 {
		return nil, errors.New("options: missing")
	}
	for i, option := range q.Options {
		if option.NodeGroup == "" {
			return nil, fmt.Errorf("options[%d].nodeGroup: missing", i)
		}
	}
	q.Policy.defaults()
	if err := q.Policy.Validate(); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return q, nil
}

// Running is what the pods of a cluster request: all of them, and the largest of them of each resource.
type Running struct {
	CPU           resource.Quantity `json:"cpu"`
	Memory        resource.Quantity `json:"memory,omitempty"`
	LargestCPU    resource.Quantity `json:"largestCPU,omitempty"`
	LargestMemory resource.Quantity `json:"largestMemory,omitempty"`
}

func (r *Running) proto() *loadlinev1.RunningDemand {
	if r == nil {
		return nil
	}
	return &loadlinev1.RunningDemand{TotalMilliCpu: r.CPU.MilliValue(), TotalMemoryBytes: r.Memory.Value(),
		LargestMilliCpu: r.LargestCPU.MilliValue(), LargestMemoryBytes: r.LargestMemory.Value()}
}

// Proto returns the question as the engine takes it.
func (q *Question) Proto() (*loadlinev1.RankOptionsRequest, error) {
	priorities := q.Policy.Matcher()
	out := &loadlinev1.RankOptionsRequest{ClusterNodes: q.ClusterNodes, Prices: q.Policy.PriceModel(),
		Policy: q.Policy.Proto(), Running: q.Running.proto()}
	for i := range q.Options {
		o := &q.Options[i]
		to := &loadlinev1.ExpansionOption{
			NodeGroup: o.NodeGroup, NodeCount: o.NodeCount, ToBeCreated: o.ToBeCreated, NodeUsdPerHour: o.NodePrice,
			InstanceType: o.InstanceType, Spot: o.Spot, Priority: priorities.Of(o.NodeGroup),
		}
		if o.Template != nil {
			var err error
			if to.TemplateNode, err = o.Template.Marshal(); err != nil {
				return nil, fmt.Errorf("options[%d].template: %w", i, err)
			}
		}
		for _, pods := range o.Pods {
			pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{
				{Resources: v1.ResourceRequirements{Requests: pods.Requests}}}}}
			to.Pods = append(to.Pods, &loadlinev1.PodRun{Pod: int32(len(out.Pods)), Count: pods.Count})
			out.Pods = append(out.Pods, view.TrimIncomingPod(pod))
		}
		out.Options = append(out.Options, to)
	}
	return out, nil
}
