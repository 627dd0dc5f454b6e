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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/internal/testing/enginetest"
)

// startProvider runs `loadline provider karpenter` beside an API server that has nothing.
func startProvider(t *testing.T, args ...string) (context.Context, externalgrpc.CloudProviderClient) {
	t.Helper()
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
	ended := make(chan error, 1)
	root := autoscalerCommand(t, "loadline").Root()
	root.SetArgs(append([]string{"provider", "karpenter", "--listen=" + socket, "--prices=" + prices,
		"--kubeconfig=" + kubeconfig, "--v=0"}, args...))
	go func() { ended <- root.ExecuteContext(ctx) }()
	conn, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		conn.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return ctx, externalgrpc.NewCloudProviderClient(conn)
}

// priceOf asks what a node of the only type in the price list costs in an hour.
func priceOf(ctx context.Context, client externalgrpc.CloudProviderClient, capacity string) (float64, error) {
	price, err := client.PricingNodePrice(ctx, &externalgrpc.PricingNodePriceRequest{
		Node: &externalgrpc.ExternalGrpcNode{Name: "n", Labels: []*externalgrpc.StringEntry{
			{Key: v1.LabelInstanceTypeStable, Value: "odd.large"}, {Key: "karpenter.sh/capacity-type", Value: capacity}}},
		StartTimestamp: timestamppb.New(time.Unix(0, 0)), EndTimestamp: timestamppb.New(time.Unix(3600, 0))},
		grpc.WaitForReady(true))
	return price.GetPrice(), err
}

// The server of Karpenter's NodeClaims answers Cluster Autoscaler's question for a price by the lists of --prices.
func TestProviderKnowsPrices(t *testing.T) {
	ctx, client := startProvider(t, "--spot-factor=0.25", "--engine="+enginetest.Address(t))
	for capacity, want := range map[string]float64{"on-demand": 0.5, "spot": 0.125} {
		if price, err := priceOf(ctx, client, capacity); err != nil || math.Abs(price-want) > 1e-12 {
			t.Errorf("%s: price %v, error %v, want %v", capacity, price, err, want)
		}
	}
}

// Growth and templates need no engine: without one, prices alone are missing.
func TestProviderNeedsNoEngine(t *testing.T) {
	ctx, client := startProvider(t, "--engine=inprocess:///none/libloadline.so")
	if _, err := priceOf(ctx, client, "spot"); status.Code(err) != codes.Unimplemented {
		t.Errorf("the price without an engine: %v", err)
	}
}
