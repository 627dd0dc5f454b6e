package serve_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/providers/serve"
)

// listed are the prices of a list with two instance types and a ratio for spot nodes.
func listed(t *testing.T) *serve.Prices {
	return serve.NewPrices(loadlinev1.NewAutoscalerClient(enginetest.Open(t)), &loadlinev1.PriceModel{
		SpotFactor: new(0.25), Catalogues: []*loadlinev1.PriceCatalogue{{Name: "list.csv",
			Csv: []byte("instance_type,on_demand_usd_per_hour,capacity_vcpu\nm5.large,0.1,2\nm5.xlarge,0.2,4\n")}}})
}

// Nodes of which the provider has no price cost what a price list says of their instance type. A node of the protocol
// has no amounts: nothing is worked out from them, as of a family, which would price a machine without hardware.
func TestNodesCostWhatPriceListsSay(t *testing.T) {
	conn, _ := servedAt(t, twoGroups(), listed(t))
	raw := externalgrpc.NewCloudProviderClient(conn)
	begin := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		what                string
		labels, annotations map[string]string
		price               float64
		code                codes.Code
	}{
		{what: "listed", labels: map[string]string{v1.LabelInstanceTypeStable: "m5.xlarge"}, price: 0.3},
		{what: "spot", labels: map[string]string{v1.LabelInstanceTypeStable: "m5.xlarge",
			"karpenter.sh/capacity-type": "spot"}, price: 0.075},
		{what: "stated", annotations: map[string]string{"loadline.dev/node-usd-per-hour": "2"}, price: 3},
		{what: "the provider's", labels: map[string]string{"zone": "z1", v1.LabelInstanceTypeStable: "m5.large"},
			price: 0.375},
		{what: "of a family", labels: map[string]string{v1.LabelInstanceTypeStable: "m5.huge"}, code: codes.NotFound},
		{what: "without a type", code: codes.NotFound},
	} {
		price, err := raw.PricingNodePrice(t.Context(), &externalgrpc.PricingNodePriceRequest{
			Node:           &externalgrpc.ExternalGrpcNode{Name: "n", Labels: list(c.labels), Annotations: list(c.annotations)},
			StartTimestamp: timestamppb.New(begin), EndTimestamp: timestamppb.New(begin.Add(90 * time.Minute))})
		if math.Abs(price.GetPrice()-c.price) > 1e-12 || status.Code(err) != c.code ||
			err != nil && !strings.Contains(err.Error(), `of node "n"`) {
			t.Errorf("%s: price %v, error %v, want %v", c.what, price, err, c.price)
		}
	}
}

// counting counts the questions that carry price lists.
type counting struct {
	loadlinev1.AutoscalerClient
	lists int
}

func (c *counting) RankOptions(ctx context.Context, r *loadlinev1.RankOptionsRequest,
	options ...grpc.CallOption) (*loadlinev1.RankOptionsResponse, error) {
	c.lists += len(r.GetPrices().GetCatalogues())
	return c.AutoscalerClient.RankOptions(ctx, r, options...)
}

// Price lists are sent once for nodes that differ in what is different for every node. Cluster Autoscaler asks about
// each group in each loop, by a template with another name, or by a copy of one of its nodes.
func TestPriceListsAreSentOncePerKindOfNode(t *testing.T) {
	engine := &counting{AutoscalerClient: loadlinev1.NewAutoscalerClient(enginetest.Open(t))}
	prices := serve.NewPrices(engine, &loadlinev1.PriceModel{SpotFactor: new(0.25),
		Catalogues: []*loadlinev1.PriceCatalogue{{Name: "list.csv",
			Csv: []byte("instance_type,on_demand_usd_per_hour\nm5.large,0.1\n")}}})
	conn, _ := servedAt(t, twoGroups(), prices)
	raw := externalgrpc.NewCloudProviderClient(conn)
	kinds := []struct {
		capacity, stated, cloud string
		want                    float64
	}{{"on-demand", "", "aws", 0.1}, {"spot", "", "aws", 0.025}, {"on-demand", "0.07", "aws", 0.07},
		{"on-demand", "", "kind", 0.1}}
	for loop := range 3 {
		for i, kind := range kinds {
			name := fmt.Sprintf("template-%d-%d", i, loop)
			annotations := map[string]string{"csi.volume.kubernetes.io/nodeid": name}
			if kind.stated != "" {
				annotations["loadline.dev/node-usd-per-hour"] = kind.stated
			}
			price, err := raw.PricingNodePrice(t.Context(), &externalgrpc.PricingNodePriceRequest{
				Node: &externalgrpc.ExternalGrpcNode{Name: name, ProviderId: kind.cloud + ":///" + name,
					Annotations: list(annotations), Labels: list(map[string]string{v1.LabelHostname: name,
						v1.LabelInstanceTypeStable: "m5.large", "karpenter.sh/capacity-type": kind.capacity})},
				StartTimestamp: timestamppb.New(time.Unix(0, 0)), EndTimestamp: timestamppb.New(time.Unix(3600, 0))})
			if err != nil || math.Abs(price.GetPrice()-kind.want) > 1e-12 {
				t.Errorf("%+v: price %v, error %v", kind, price.GetPrice(), err)
			}
		}
	}
	if engine.lists != len(kinds) {
		t.Errorf("the list was sent %d times for %d kinds of nodes", engine.lists, len(kinds))
	}
}

func list(entries map[string]string) (all []*externalgrpc.StringEntry) {
	for key, value := range entries {
		all = append(all, &externalgrpc.StringEntry{Key: key, Value: value})
	}
	return all
}

// Pods cost what they do for Cluster Autoscaler, whose expander `price` takes no group of whose pods it gets no price:
// 0.033174 USD per CPU and 0.004446 per GiB in an hour.
func TestPodsCostWhatTheyRequest(t *testing.T) {
	conn, _ := servedAt(t, twoGroups(), listed(t))
	raw := externalgrpc.NewCloudProviderClient(conn)
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m"),
			v1.ResourceMemory: resource.MustParse("2Gi")}}}}}}
	data, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Unix(1_700_000_000, 0)
	ask := func(bytes []byte) (*externalgrpc.PricingPodPriceResponse, error) {
		return raw.PricingPodPrice(t.Context(), &externalgrpc.PricingPodPriceRequest{PodBytes: bytes,
			StartTimestamp: timestamppb.New(begin), EndTimestamp: timestamppb.New(begin.Add(2 * time.Hour))})
	}
	price, err := ask(data)
	if want := 2 * (0.5*0.033174 + 2*0.004446); err != nil || math.Abs(price.GetPrice()-want) > 1e-12 {
		t.Errorf("price %v, error %v, want %v", price, err, want)
	}
	if _, err := ask([]byte{0xff}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("error %v of bytes that are no pod", err)
	}
	conn, _ = served(t, twoGroups())
	raw = externalgrpc.NewCloudProviderClient(conn)
	if _, err := ask(data); status.Code(err) != codes.Unimplemented {
		t.Errorf("error %v where nobody has prices", err)
	}
}
