package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/harness"
)

// commandsOf returns the commands of a document that begin with `loadline`, as words.
func commandsOf(t *testing.T, document string) (commands [][]string) {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "    loadline ") {
			commands = append(commands, strings.Fields(line)[1:])
		}
	}
	return commands
}

var latest = regexp.MustCompile(`had a node after \S+ in the median, (\S+) at the latest`)

// waitOf returns how long the last pod had no node, by what generate-load has printed.
func waitOf(t *testing.T, out string) time.Duration {
	t.Helper()
	all := latest.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		t.Fatalf("it does not say how long pods waited: %s", out)
	}
	wait, err := time.ParseDuration(all[len(all)-1][1])
	if err != nil {
		t.Fatal(err)
	}
	return wait
}

// The commands of docs/slack-end-to-end.md do what it says, one after the other, but with shorter times.
func TestWalkthrough(t *testing.T) {
	t.Parallel()
	commands := commandsOf(t, "docs/slack-end-to-end.md")
	ctx := deadline(t)
	s := &scaled{t: t, ctx: ctx, rest: 4 * time.Second, createDelay: 8 * time.Second, cluster: startCluster(t, ctx,
		harness.Options{Log: t.Logf, ControllerManager: true, Kubelet: true, Audit: true})}
	s.rights(true)
	s.startCloud(pool("base", 1, 1, 2, 0.10), pool("more", 0, 20, 4, 0.20))
	if err := s.cloud.Grow("base", 1); err != nil {
		t.Fatal(err)
	}
	s.wait("the first node", func() bool { return len(s.nodes()) == 1 })
	resident := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "resident"},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}
	if err := s.cluster.CreatePods(ctx, []*v1.Pod{resident}); err != nil {
		t.Fatal(err)
	}
	s.startScheduler()
	file := filepath.Join(s.cluster.Dir(), "defaults.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: loadline.dev/v1alpha1\nkind: AutoscalerConfiguration\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	slack, ran := false, map[string]int{}
	for _, words := range commands {
		words[len(words)-1] = strings.TrimSpace(words[len(words)-1])
		ran[words[0]]++
		if words[0] == "autoscaler" {
			args := append(words[1:], "--engine=inprocess", "--scan-interval=500ms", "--scale-down-unneeded-time=2s",
				"--scale-down-delay-after-add=1s",
				"--slack-removal-delay=1s", "--node-delete-delay-after-taint=1s", "--poll-interval=500ms",
				"--eviction-retry-interval=500ms",
				"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s",
				"--leader-elect-retry-period=500ms")
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "$CLOUD", "unix://"+s.socket())
			}
			slack = slices.ContainsFunc(args,
				func(a string) bool { return strings.HasPrefix(a, "--extra-capacity-min-rate") })
			s.changeAutoscaler(file, ran["autoscaler"], args)
			continue
		}
		out, err := s.cluster.CLI(ctx, words...)
		if err != nil {
			t.Fatalf("loadline %v: %v", words, err)
		}
		t.Logf("loadline %v\n%s", words, out)
		if words[0] != "generate-load" {
			continue
		}
		if made := !slices.Contains(words, "--remove"); made && slices.Contains(words, "burst") && slack {
			if wait := waitOf(t, out); wait > demo.BurstBound {
				t.Errorf("with slack the burst waited %v", wait)
			}
		}
		s.calm(1)
		s.checkPage(slack)
	}
	for what, want := range map[string]int{"autoscaler": 3, "generate-load": 7, "slack": 1, "top": 1, "drain": 1} {
		if ran[what] != want {
			t.Errorf("%d commands %s, want %d", ran[what], what, want)
		}
	}
	s.wait("the last node to go", func() bool { return s.cloud.Target("more") == 0 })
	if _, largest := s.cloud.Sizes("more"); largest < 2 {
		t.Errorf("the group has had %d nodes at most", largest)
	}
}

// changeAutoscaler stops the autoscaler that runs, if any, and starts another.
func (s *scaled) changeAutoscaler(file string, number int, args []string) {
	s.t.Helper()
	if s.autoscaler != nil {
		if err := s.autoscaler.Stop(); err != nil {
			s.t.Fatal(err)
		}
	}
	var err error
	if s.autoscaler, err = s.cluster.StartAutoscaler(s.ctx, "autoscaler-"+string(rune('0'+number)), s.kubeconfig, file,
		args...); err != nil {
		s.t.Fatal(err)
	}
	s.calm(1)
}

// checkPage waits until the page of the autoscaler shows the cluster at rest.
func (s *scaled) checkPage(slack bool) {
	s.t.Helper()
	s.wait("the page to show the cluster", func() bool {
		page, err := s.autoscaler.Get(s.ctx, "/")
		if err != nil {
			s.t.Fatal(err)
		}
		wants := []string{"Leads, term ", "Mode act. Cloud provider: externalgrpc. Last loop: ",
			"0 of them waiting for a node.",
			"No pod waits for a node.", "base-1",
			fmt.Sprintf("; target %d, 0 to 20", s.cloud.Target("more")),
			fmt.Sprintf("<p class=\"soft\">%d node", len(s.nodes()))}
		if slack {
			wants = append(wants, "Room for pods to come", ": ready<")
		}
		return !slices.ContainsFunc(wants, func(want string) bool { return !strings.Contains(page, want) })
	})
	if status, err := s.autoscaler.Get(s.ctx, "/statusz"); err != nil ||
		!strings.Contains(status, "State: Leads, term ") {
		s.t.Errorf("/statusz: %v, error %v", status, err)
	}
}
