package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A shell asks as it does of every program of cobra; the last line of its answer is for the shell alone.
func TestCompletionOfNames(t *testing.T) {
	kubeconfig, _ := apiServer(t, "testdata/proposal.json")
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
