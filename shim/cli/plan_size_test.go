package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline.dev/shim/internal/testing/enginetest"
)

// planOfSizes runs `plan -o json` for groups that are sized by how full they are.
func planOfSizes(t *testing.T, args ...string) planAnswer {
	t.Helper()
	t.Setenv("LOADLINE_LIBRARY", enginetest.Library(t))
	out, errs, code := run(t, "loadline", "", append([]string{"plan", "-o", "json", "--now", sizeNow}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var got planAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// A group with spec.size grows in a plan as `size` says, for how full it is and for no pod: 1800m of 500m at 70 % are
// 5.14 nodes.
func TestPlanGrowsASizedGroupByHowFullItIs(t *testing.T) {
	data, err := os.ReadFile("testdata/size-mixed-groups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(data), "---")
	text := strings.Replace(first, "nodeSelector: {pool: web}",
		"template: {metadata: {labels: {customer: shared}}, status: {capacity: {cpu: 500m, memory: 4Gi}}}", 1)
	file := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := planOfSizes(t, "--groups", file, "-f", "testdata/size-zero.yaml")
	if len(got.Growth) != 1 || got.Growth[0].NodeGroup != "web" || got.Growth[0].ForUtilization != 6 ||
		got.Growth[0].ForPods != 0 || got.Growth[0].ForSlack != 0 {
		t.Errorf("growth: %+v", got.Growth)
	}
	if len(got.Size) != 1 || got.Size[0].Name != "web" || got.Size[0].Delta != 6 || got.Size[0].AskCloud != 6 {
		t.Errorf("size: %+v", got.Size)
	}
}

// A plan says of sized groups what `size` says of them.
func TestPlanTellsTheSizesThatSizeTells(t *testing.T) {
	args := []string{"--groups", "testdata/size-mixed-groups.yaml", "-f", "testdata/size-mixed.yaml"}
	type told struct {
		Name, Action  string
		Delta         int64
		CPU           any
		Pods, Pending int64
	}
	tell := func(groups []sizeGroup) (out []told) {
		for _, g := range groups {
			out = append(out, told{g.Name, g.Action, g.Delta, number(g.CPUPercent), g.Pods, g.PendingPods})
		}
		return out
	}
	if diff := cmp.Diff(tell(sizeJSON(t, args...).Groups), tell(planOfSizes(t, args...).Size)); diff != "" {
		t.Errorf("sizes (-size +plan):\n%s", diff)
	}
}
