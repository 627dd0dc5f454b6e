package serve

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/view"
)

// Prices are those of price lists, which an engine reads. Safe for concurrent use.
type Prices struct {
	engine loadlinev1.AutoscalerClient
	model  *loadlinev1.PriceModel
	pods   *loadlinev1.PriceModel // has no lists, which say nothing about pods

	mu sync.Mutex
	// nodes are the prices that the engine has said, by template: lists do not change, and each question carries all of
	// them. Clients ask for each group in each loop. Guarded by mu.
	nodes map[string]*loadlinev1.NodePrice
}

// mostNodes is how many prices are kept: as many as there can be node groups.
const mostNodes = 1000

// NewPrices returns the prices of a model. A node of the protocol has labels but no amounts, so that only a price of
// its instance type counts, or one that it states itself.
func NewPrices(engine loadlinev1.AutoscalerClient, model *loadlinev1.PriceModel) *Prices {
	model = proto.CloneOf(model)
	model.LastSource = loadlinev1.NodePrice_INSTANCE_TYPE
	pods := proto.CloneOf(model)
	pods.Catalogues = nil
	return &Prices{engine: engine, model: model, pods: pods, nodes: map[string]*loadlinev1.NodePrice{}}
}

// ofNode returns the price of a node.
func (p *Prices) ofNode(ctx context.Context, node *v1.Node) (*loadlinev1.NodePrice, error) {
	template, err := templateOf(node).Marshal()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	known := p.nodes[string(template)]
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	option, err := p.ask(ctx, template)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.nodes) >= mostNodes {
		clear(p.nodes)
	}
	p.nodes[string(template)] = option.GetNodePrice()
	return option.GetNodePrice(), nil
}

// nodeIDs is an annotation with the ids by which drivers of volumes know a node.
const nodeIDs = "csi.volume.kubernetes.io/nodeid"

// templateOf returns a node without what is different for each node of its kind, and says nothing about its price: its
// names, and the number of its instance.
func templateOf(node *v1.Node) *v1.Node {
	template := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(node.Labels),
		Annotations: maps.Clone(node.Annotations)}}
	delete(template.Labels, v1.LabelHostname)
	delete(template.Annotations, nodeIDs)
	if cloud, _, found := strings.Cut(node.Spec.ProviderID, "://"); found {
		template.Spec.ProviderID = cloud + "://"
	}
	return template
}

// ask has the engine price a node, or a pod by the rates that Cluster Autoscaler has for pods.
func (p *Prices) ask(ctx context.Context, template []byte, pods ...*v1.Pod) (*loadlinev1.RankedOption, error) {
	option := &loadlinev1.ExpansionOption{NodeGroup: "asked", NodeCount: 1, TemplateNode: template}
	request := &loadlinev1.RankOptionsRequest{Prices: p.model, Options: []*loadlinev1.ExpansionOption{option},
		Policy: &loadlinev1.RankPolicy{Preset: loadlinev1.RankPolicy_CLUSTER_AUTOSCALER}}
	if len(pods) > 0 {
		request.Prices = p.pods
	}
	for i, pod := range pods {
		request.Pods = append(request.Pods, view.TrimIncomingPod(pod))
		option.Pods = append(option.Pods, &loadlinev1.PodRun{Pod: int32(i), Count: 1})
	}
	answer, err := p.engine.RankOptions(ctx, request)
	if err != nil {
		return nil, err
	}
	if len(answer.GetOptions()) != 1 {
		return nil, errors.New("the engine has not answered for the one option")
	}
	return answer.GetOptions()[0], nil
}

// hoursOf returns the span of time of a request, in the present or in the old form.
func hoursOf(start, end, oldStart, oldEnd *timestamppb.Timestamp) float64 {
	return cmp.Or(end, oldEnd).AsTime().Sub(cmp.Or(start, oldStart).AsTime()).Hours()
}

// PricingNodePrice returns what a node costs in a span of time.
func (s *Server) PricingNodePrice(ctx context.Context,
	r *externalgrpc.PricingNodePriceRequest) (*externalgrpc.PricingNodePriceResponse, error) {
	asked := r.GetNode()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: cmp.Or(asked.GetName(), "asked"),
		Labels: entries(asked.GetLabels()), Annotations: entries(asked.GetAnnotations())},
		Spec: v1.NodeSpec{ProviderID: asked.GetProviderId()}}
	hours := hoursOf(r.GetStartTimestamp(), r.GetEndTimestamp(), r.GetOldStartTime(), r.GetOldEndTime())
	price, err := s.provider.NodePrice(ctx, node)
	switch {
	case err != nil:
		return nil, answered(err)
	case price != nil:
		return &externalgrpc.PricingNodePriceResponse{Price: *price * hours}, nil
	case s.prices == nil:
		return nil, status.Error(codes.Unimplemented, "what nodes cost is not known")
	}
	listed, err := s.prices.ofNode(ctx, node)
	if err != nil {
		return nil, answered(err)
	}
	if listed.GetSource() == loadlinev1.NodePrice_SOURCE_UNSPECIFIED {
		return nil, status.Errorf(codes.NotFound, "no price list has the instance type %q of node %q: --prices",
			node.Labels[v1.LabelInstanceTypeStable], asked.GetName())
	}
	return &externalgrpc.PricingNodePriceResponse{Price: listed.GetUsdPerHour() * hours}, nil
}

// PricingPodPrice returns what a pod costs in a span of time on a machine that suits it perfectly.
func (s *Server) PricingPodPrice(ctx context.Context,
	r *externalgrpc.PricingPodPriceRequest) (*externalgrpc.PricingPodPriceResponse, error) {
	if s.prices == nil {
		return nil, status.Error(codes.Unimplemented, "what pods cost is not known")
	}
	pod := new(v1.Pod)
	if err := pod.Unmarshal(r.GetPodBytes()); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "pod_bytes: is not a Pod: %v", err)
	}
	option, err := s.prices.ask(ctx, nil, pod)
	if err != nil {
		return nil, answered(err)
	}
	hours := hoursOf(r.GetStartTimestamp(), r.GetEndTimestamp(), nil, nil)
	return &externalgrpc.PricingPodPriceResponse{Price: option.GetTheoreticalCostUsdPerHour() * hours}, nil
}
