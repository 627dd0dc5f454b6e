package cli

import (
	"encoding/json"
	"testing"
)

// A pod whose two containers swap 1 and 3 cpu: 6 by the rule of 1.36, 4 by that of 1.37. A live cluster counts by its
// API server's release, a dump as 1.36, and both by the release that is named.
func TestResizedPodsCountByTheRelease(t *testing.T) {
	const dump = "testdata/resizing.json"
	for _, c := range []struct {
		server, flag string // empty: a dump, and no flag
		cpu          int64
	}{
		{"", "", 6000}, {"", "1.37", 4000}, {"v1.36.3", "", 6000}, {"v1.37.2", "", 4000}, {"v1.38.0-rc.0", "", 4000},
		{"v1.37.2", "1.36", 6000}, {"v1.36.3", "1.37", 4000}, {"unknown", "", 6000},
	} {
		args := []string{"top", "-o", "json"}
		if c.server == "" {
			args = append(args, "-f", dump)
		} else {
			kubeconfig, _ := apiServerOf(t, dump, c.server)
			args = append(args, "--kubeconfig", kubeconfig, "--context", "test")
		}
		if c.flag != "" {
			args = append(args, "--kubernetes-version", c.flag)
		}
		out, errs, code := run(t, "loadline", "", args...)
		var answer struct{ Total []topResource }
		if err := json.Unmarshal([]byte(out), &answer); err != nil || code != 0 {
			t.Fatalf("%+v: exit %d, %s: %v", c, code, errs, err)
		}
		for _, total := range answer.Total {
			if total.Resource == "cpu" && (total.Requests != c.cpu || total.Limits != c.cpu) {
				t.Errorf("%+v: got requests %d and limits %d", c, total.Requests, total.Limits)
			}
		}
	}
}
