package autoscaler

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loadline.dev/shim/autoscaler/config"
)

// A rank policy and price lists that change count from then on, without a restart; a file that cannot be read changes
// nothing, and the status says so.
func TestFilesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		policy, prices := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "prices.csv")
		write := func(file, text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		prefer := func(group string) {
			write(policy, "apiVersion: loadline.dev/v1alpha1\nkind: RankPolicy\nstrategies: [priority]\n"+
				"priorities: {10: ["+group+"]}\n")
		}
		prefer("first")
		write(prices, "instance_type,on_demand_usd_per_hour\nm1,0.25\n")
		b := growing(t, map[string]*skyGroup{"first": {max: 10, cpu: "4"}, "second": {max: 10, cpu: "4"}},
			func(c *config.Configuration) {
				c.ScaleUp.RankPolicy, c.ScaleUp.Prices = policy, []string{prices}
			})
		grows := func(pods string, want ...string) {
			t.Helper()
			b.addPending(pods, 1, "3")
			b.run(30 * time.Second)
			if got := b.sky.requests(); !slices.Equal(got, want) {
				t.Fatalf("asked for %v, want %v", got, want)
			}
		}
		grows("one", "first+1")
		prefer("second")
		write(prices, "instance_type,on_demand_usd_per_hour\nm1,0.75\n")
		b.run(2 * reloadAfter)
		grows("two", "first+1", "second+1")
		if csv := string(b.leader.planner.Settings.GetPrices().GetCatalogues()[0].GetCsv()); !strings.Contains(csv, "0.75") {
			t.Errorf("plans go by these prices: %q", csv)
		}
		write(policy, "strategies: [what")
		b.run(2 * reloadAfter)
		if s := b.readStatus(); !slices.ContainsFunc(s.Warnings, func(w string) bool {
			return strings.Contains(w, policy) && strings.Contains(w, "what they said before holds")
		}) {
			t.Errorf("warnings %q", s.Warnings)
		}
		grows("three", "first+1", "second+1", "second+1")
		prefer("first")
		b.run(2 * reloadAfter)
		if s := b.readStatus(); len(s.Warnings) > 0 {
			t.Errorf("warnings %q", s.Warnings)
		}
		b.end()
	})
}
