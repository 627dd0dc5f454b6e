package cli

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/timestamppb"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/internal/enginetest"
)

// The server of Karpenter's NodeClaims answers Cluster Autoscaler's question for a price by the lists of --prices.
func TestProviderKnowsPrices(t *testing.T) {
	apiServer := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(apiServer.Close)
	dir := t.TempDir()
	socket := "unix://" + filepath.Join(dir, "socket")
	prices, kubeconfig := filepath.Join(dir, "prices.csv"), filepath.Join(dir, "config")
	for file, text := range map[string]string{
		prices: "instance_type,on_demand_usd_per_hour\nodd.large,0.5\n",
		kubeconfig: "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n" +
			"clusters: [{name: a, cluster: {server: " + apiServer.URL + "}}]\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	root := autoscalerCommand(t, "loadline").Root()
	root.SetArgs([]string{"provider", "karpenter", "--listen=" + socket, "--prices=" + prices, "--spot-factor=0.25",
		"--kubeconfig=" + kubeconfig, "--engine=" + enginetest.Address(t), "--v=0"})
	go func() { ended <- root.ExecuteContext(ctx) }()
	conn, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for capacity, want := range map[string]float64{"on-demand": 0.5, "spot": 0.125} {
		price, err := externalgrpc.NewCloudProviderClient(conn).PricingNodePrice(ctx, &externalgrpc.PricingNodePriceRequest{
			Node: &externalgrpc.ExternalGrpcNode{Name: "n", Labels: []*externalgrpc.StringEntry{
				{Key: v1.LabelInstanceTypeStable, Value: "odd.large"}, {Key: "karpenter.sh/capacity-type", Value: capacity}}},
			StartTimestamp: timestamppb.New(time.Unix(0, 0)), EndTimestamp: timestamppb.New(time.Unix(3600, 0))},
			grpc.WaitForReady(true))
		if err != nil || math.Abs(price.GetPrice()-want) > 1e-12 {
			t.Errorf("%s: price %v, error %v, want %v", capacity, price, err, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
