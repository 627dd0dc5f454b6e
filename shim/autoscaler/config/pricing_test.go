package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/ranking"
)

// The settings of prices arrive as the engine takes them, with and without a ranking.
func TestPricingArrives(t *testing.T) {
	c, _, err := parse(t, "--spot-factor=0.4 --interruption-risk=0.05 --node-surcharge=0.01", "")
	if err != nil {
		t.Fatal(err)
	}
	files, err := c.ReadFiles()
	if err != nil {
		t.Fatal(err)
	}
	p := files.Prices
	if p.GetSpotFactor() != 0.4 || p.GetInterruptionRisk() != 0.05 || p.GetNodeSurchargeUsdPerHour() != 0.01 ||
		files.Ranking != nil {
		t.Errorf("prices %v, ranking %v", p, files.Ranking)
	}
	c, _, err = parse(t, "--expander=least-waste,price --commitment=m5=64 --commitment==1500m "+
		"--preferred-table=learned", "")
	if err != nil {
		t.Fatal(err)
	}
	if files, err = c.ReadFiles(); err != nil {
		t.Fatal(err)
	}
	want := &loadlinev1.RankPolicy{Preset: loadlinev1.RankPolicy_CLUSTER_AUTOSCALER,
		Strategies:     []loadlinev1.RankPolicy_Strategy{loadlinev1.RankPolicy_LEAST_WASTE, loadlinev1.RankPolicy_PRICE},
		PreferredTable: loadlinev1.RankPolicy_LEARNED}
	if !proto.Equal(files.Ranking, want) {
		t.Errorf("ranking %v, want %v", files.Ranking, want)
	}
	commitments := []*loadlinev1.Commitment{{Instance: "m5", UnusedMilliCpu: 64_000}, {UnusedMilliCpu: 1500}}
	for i, got := range files.Prices.GetCommitments() {
		if len(files.Prices.GetCommitments()) != 2 || !proto.Equal(got, commitments[i]) {
			t.Errorf("commitments %v, want %v", files.Prices.GetCommitments(), commitments)
		}
	}
	c, _, err = parse(t, "--rank-preset=proposal --preferred-node=8:32Gi", "")
	if err != nil {
		t.Fatal(err)
	}
	if files, err = c.ReadFiles(); err != nil || files.Ranking.GetPreferredNode().GetMilliCpu() != 8000 ||
		files.Ranking.GetPreferredNode().GetMemoryBytes() != 32<<30 {
		t.Errorf("ranking %v, error %v", files.Ranking, err)
	}
}

// A setting that only a ranking reads is refused without one.
func TestPricingThatHasNoEffectIsRefused(t *testing.T) {
	for _, args := range []string{"--commitment=m5=64", "--preferred-table=learned", "--preferred-node=8"} {
		c, _, err := parse(t, args, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.ReadFiles(); err == nil || !strings.Contains(err.Error(), "groups are not ranked") {
			t.Errorf("%s: error %v", args, err)
		}
	}
}

// Price lists that are built in hold in each setting, unless flags or the rank policy name others or want none.
func TestBuiltInPriceListsHoldUnlessOthersAreNamed(t *testing.T) {
	const gce = "../../../manifests/prices/gce-us-central1.csv"
	policy := func(prices string) string {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		text := "apiVersion: loadline.dev/v1alpha1\nkind: RankPolicy\nprices: " + prices + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "--rank-policy=" + file
	}
	absolute, err := filepath.Abs(gce)
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string][]string{
		"":                                  ranking.DefaultCatalogues,
		"--cloud=karpenter":                 ranking.DefaultCatalogues,
		"--rank-preset=proposal":            ranking.DefaultCatalogues,
		"--cloud=karpenter --prices=" + gce: {"gce-us-central1.csv"},
		policy("{spotFactor: 0.5}"):         ranking.DefaultCatalogues,
		policy("{spotFactor: 0.6}") + " --prices=" + gce:               {"gce-us-central1.csv"},
		policy("{catalogues: [" + absolute + "]}"):                     {"gce-us-central1.csv"},
		policy("{catalogues: []}"):                                     nil,
		policy("{catalogues: [], spotFactor: 1}") + " --prices=" + gce: {"gce-us-central1.csv"},
	} {
		c, _, err := parse(t, args, "")
		if err != nil {
			t.Fatal(err)
		}
		files, err := c.ReadFiles()
		if err != nil {
			t.Fatal(err)
		}
		lists := files.Prices.GetCatalogues()
		if len(lists) != len(want) {
			t.Errorf("%s: %d lists, want %v", args, len(lists), want)
			continue
		}
		for i, list := range lists {
			if !strings.HasSuffix(list.GetName(), strings.TrimSuffix(want[i], ".gz")) {
				t.Errorf("%s: list %d is %s, want %s", args, i, list.GetName(), want[i])
			}
		}
	}
}
