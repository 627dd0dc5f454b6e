package ranking

import (
	"context"
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
)

// The price lists that are shipped are read, and have the public prices.
func TestShippedCatalogues(t *testing.T) {
	policy := Default()
	for _, file := range []string{"aws-us-east-1.csv", "gce-us-central1.csv"} {
		if err := policy.AddCatalogue("../../manifests/prices/" + file); err != nil {
			t.Fatal(err)
		}
	}
	node := v1.Node{Status: v1.NodeStatus{Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("8"),
		v1.ResourceMemory: resource.MustParse("30Gi")}}}
	template, err := node.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	const disk = 100 * 0.1 / 720 // GCE's default boot disk
	for _, want := range []struct {
		instanceType, catalogue, key string
		source                       loadlinev1.NodePrice_Source
		price                        float64
	}{
		{"m5.2xlarge", "aws-us-east-1.csv", "m5.2xlarge", loadlinev1.NodePrice_INSTANCE_TYPE, 0.384},
		{"m5.unheard-of", "aws-us-east-1.csv", "m5.2xlarge", loadlinev1.NodePrice_FAMILY, 0.384},
		{"n1-standard-8", "gce-us-central1.csv", "n1-standard-8", loadlinev1.NodePrice_INSTANCE_TYPE, 0.38 + disk},
		{"n1-unheard-of", "gce-us-central1.csv", "n1", loadlinev1.NodePrice_FAMILY, 8*0.031611 + 30*0.004237 + disk},
		// AWS has a family c4 as well.
		{"c4-standard-8", "", "", loadlinev1.NodePrice_BASE_RATES, 8*0.033174 + 30*0.004446 + disk},
	} {
		response, err := loadlinev1.NewAutoscalerClient(enginetest.Open(t)).
			RankOptions(context.Background(), &loadlinev1.RankOptionsRequest{
				Options: []*loadlinev1.ExpansionOption{
					{NodeGroup: "a", NodeCount: 1, TemplateNode: template, InstanceType: want.instanceType}},
				Prices: policy.PriceModel(),
				Policy: policy.Proto(),
			})
		if err != nil {
			t.Fatal(err)
		}
		price := response.GetOptions()[0].GetNodePrice()
		if price.GetCatalogue() != want.catalogue || price.GetKey() != want.key || price.GetSource() != want.source ||
			math.Abs(price.GetUsdPerHour()-want.price) > 1e-9 {
			t.Errorf("%s: %v, want %v from %s in %q", want.instanceType, price, want.price, want.key, want.catalogue)
		}
	}
}
