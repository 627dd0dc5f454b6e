package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A shell asks as it does of every program of cobra; the last line of its answer is for the shell alone.
func TestCompletionOfNames(t *testing.T) {
	kubeconfig, _ := apiServer(t, "testdata/proposal.json")
	namespaces := filepath.Join(t.TempDir(), "namespaces.json")
	if err := os.WriteFile(namespaces, []byte(`{"items": [{"kind": "Namespace", "metadata": {"name": "shop"}},
		{"kind": "Namespace", "metadata": {"name": "zoo"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	named, _ := apiServer(t, namespaces)
	dump := []string{"-f", "testdata/proposal.json"}
	live := []string{"--kubeconfig", kubeconfig, "--context", "test"}
	for _, c := range []struct {
		words []string
		want  []string
	}{
		{append([]string{"why-not", "pod5"}, append(dump, "node")...), []string{"node1", "node2"}},
		{append([]string{"why-not", "pod5"}, append(live, "node")...), []string{"node1", "node2"}},
		{append([]string{"score"}, append(live, "pod")...), []string{"pod1", "pod2"}}, // one page of this server
		{append([]string{"score"}, append(dump, "default/pod5")...), []string{"default/pod5"}},
		{append([]string{"fit"}, append(live, "none/")...), nil},
		{[]string{"why", "--groups", "../../docs/groups.yaml", "-f", "../../docs/shop.yaml", "spot"}, []string{"spot-large"}},
		{[]string{"drain", "-o", "j"}, []string{"json", "jsonpath=", "jsonpath-file=", "jsonpath-as-json="}},
		{[]string{"consolidate", "--mode", ""}, []string{"off", "remove", "replace"}},
		{[]string{"top", "--kubeconfig", kubeconfig, "--context", ""}, []string{"other", "test"}},
		{[]string{"slack", "--slack-version", ""}, []string{"1", "2a", "2b", "pareto"}},
		{[]string{"slack", "--slack-basis", ""}, []string{"capacity", "requested"}},
		{[]string{"plan", "--decisions", "scale-up,s"}, []string{"scale-up,slack", "scale-up,scale-down"}},
		{[]string{"autoscaler", "--decisions", "d"}, []string{"downscale-order"}},
		{[]string{"rank", "--strategies", "price,least"}, []string{"price,least-waste", "price,least-nodes"}},
		{[]string{"rank", "--rank-preset", "c"}, []string{"cluster-autoscaler"}},
		{[]string{"rank", "--preferred-table", ""}, []string{"cluster-autoscaler", "proposal", "learned"}},
		{[]string{"drain", "--kubernetes-version", ""}, []string{"1.36", "1.37"}},
		{[]string{"fit", "--upstream-defects", ""}, []string{"namespace-selector-sees-no-labels", "none"}},
		{[]string{"top", "--sort-by", ""}, []string{"load", "name", "cpu", "memory"}},
		{[]string{"fit", "-f", "../../docs/shop.yaml", "-n", ""}, []string{"shop"}},
		{[]string{"fit", "--kubeconfig", named, "--context", "test", "-n", "s"}, []string{"shop"}},
	} {
		out, errs, code := run(t, "loadline", "", append([]string{"__complete"}, c.words...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		got := lines[:len(lines)-1]
		if len(got) == 0 {
			got = nil
		}
		if diff := cmp.Diff(c.want, got); diff != "" || code != 0 {
			t.Errorf("%v: exit %d %s (-want +got): %s", c.words, code, errs, diff)
		}
	}
}

func TestVersionInItsForms(t *testing.T) {
	out, errs, code := run(t, "loadline", "", "--version")
	if out != "loadline "+Version+"\n" || code != 0 {
		t.Errorf("exit %d: %q %s", code, out, errs)
	}
	out, errs, code = run(t, "loadline", "", "version", "-o", "json")
	for _, want := range []string{`"loadline": "` + Version + `"`, `"engine": "` + Version + `"`, `"engineLacks": []`} {
		if !strings.Contains(out, want) || code != 0 {
			t.Errorf("exit %d: %s lacks %s; %s", code, out, want, errs)
		}
	}
}
