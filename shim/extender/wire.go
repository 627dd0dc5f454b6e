package extender

import (
	"encoding/json"
	"errors"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// maxRawScore is the highest score of the engine, extenderv1.MaxExtenderPriority that of the protocol.
const maxRawScore = 100

// Decode reads a message of the extender protocol. The protocol's types have no names of their own for JSON: a
// scheduler writes Go's field names, others wrote them in lower case, so letter case does not count.
func Decode(data []byte, into any) error {
	return json.Unmarshal(data, into)
}

// Encode writes a message of the extender protocol, with Go's field names.
func Encode(message any) ([]byte, error) {
	if list, ok := message.(extenderv1.HostPriorityList); ok && list != nil {
		const perNode = len(`{"Host":"ip-10-0-255-255.eu-central-1.compute.internal","Score":10},`)
		return appendPriorities(make([]byte, 0, 2+perNode*len(list)), list), nil
	}
	return json.Marshal(message)
}

// Quantise turns a score of [0, 100] into one of [0, 10], the range of the protocol: rounded half up. A score outside
// is clamped, for kube-scheduler adds whatever it gets to the total.
func Quantise(score int32) int64 {
	clamped := int64(min(max(score, 0), maxRawScore))
	return (clamped*extenderv1.MaxExtenderPriority + maxRawScore/2) / maxRawScore
}

// arguments is what this extender reads of extenderv1.ExtenderArgs: of nodes, which may be large, only the names.
type arguments struct {
	Pod       *v1.Pod
	Nodes     *nodeList
	NodeNames []string
}

type nodeList struct {
	Items []struct {
		Metadata struct {
			Name string
		}
	}
}

//lint:ignore ST1005 Pod is the name of the field
var errNoPod = errors.New("Pod: missing")

// decodeArguments returns the pod and the distinct names of the nodes asked about, in the order asked. `full` tells
// that whole nodes came instead of names. The names are good even when the pod is missing.
func decodeArguments(body []byte) (pod *v1.Pod, names []string, full bool, err error) {
	args, err := decodeSplit(body)
	if err != nil {
		args = arguments{}
		if err := Decode(body, &args); err != nil {
			return nil, nil, false, err
		}
	}
	names = args.NodeNames
	if args.Nodes != nil && names == nil {
		full = true
		names = make([]string, 0, len(args.Nodes.Items))
		for i := range args.Nodes.Items {
			names = append(names, args.Nodes.Items[i].Metadata.Name)
		}
	}
	if args.Pod == nil {
		return nil, distinct(names), full, errNoPod
	}
	return args.Pod, distinct(names), full, nil
}

// distinct drops repeated names: a scheduler adds up all scores that it gets for a node.
func distinct(names []string) []string {
	seen := make(map[string]struct{}, len(names))
	kept := names[:0]
	for _, name := range names {
		if _, again := seen[name]; !again {
			seen[name] = struct{}{}
			kept = append(kept, name)
		}
	}
	return kept
}

// neutral answers 0 for every node: an extender without an opinion.
func neutral(names []string) extenderv1.HostPriorityList {
	answer := make(extenderv1.HostPriorityList, len(names))
	for i, name := range names {
		answer[i].Host = name
	}
	return answer
}
