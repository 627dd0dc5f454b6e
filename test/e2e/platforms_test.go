package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/docs"
	"loadline.dev/test/e2e/harness"
)

// follower is somebody who follows the first block of a section of docs/platforms.md, command by command. A command
// that does not end runs until the next one begins.
type follower struct {
	*testing.T
	ctx      context.Context
	cluster  *harness.Cluster
	commands []docs.Command // the rest of the block
	// flags are added to an autoscaler that the page runs in the foreground.
	flags   []string
	runs    *harness.Autoscaler // in the foreground; nil: none
	stepped time.Time
}

// follow prepares the programs that the commands call. The page has to say that this test runs the block.
func follow(t *testing.T, ctx context.Context, cluster *harness.Cluster, section string) *follower {
	t.Helper()
	f := &follower{T: t, ctx: ctx, cluster: cluster, stepped: time.Now()}
	f.must(harness.BuildCommands(ctx, t.Logf))
	root, err := harness.Root()
	f.must(err)
	blocks, err := docs.Section(filepath.Join(root, "docs", "platforms.md"), section)
	f.must(err)
	if len(blocks) == 0 || blocks[0].Run != "by "+t.Name() {
		t.Fatalf("docs/platforms.md: the first block of %q is not run by %s: %+v", section, t.Name(), blocks)
	}
	f.commands = blocks[0].Commands
	return f
}

func (f *follower) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// next runs the next command unchanged and returns what it prints. The command has to begin with these words.
func (f *follower) next(words string) (out string) {
	f.Helper()
	if len(f.commands) == 0 || !strings.HasPrefix(f.commands[0].Text, words) {
		f.Fatalf("the page goes on with %v, want a command that begins with %q", f.commands, words)
	}
	command := f.commands[0].Text
	f.commands = f.commands[1:]
	f.endForeground()
	f.stepped = time.Now()
	var err error
	if strings.HasPrefix(command, "loadline autoscaler ") {
		name := fmt.Sprintf("autoscaler-%d", len(f.commands))
		f.runs, err = f.cluster.StartAutoscalerCommand(f.ctx, name, command, f.flags...)
	} else {
		out, err = f.cluster.Shell(f.ctx, command)
	}
	f.must(err)
	f.Logf("$ %s\n%s", command, out)
	return out
}

// end checks that the page has no further command.
func (f *follower) end() {
	f.Helper()
	f.endForeground()
	if len(f.commands) > 0 {
		f.Errorf("the page goes on with %v", f.commands)
	}
}

func (f *follower) endForeground() {
	f.Helper()
	if f.runs != nil {
		f.must(f.runs.Stop())
		f.runs = nil
	}
}

// step waits until something holds that the page promises, and prints how long that was after the begin of the command.
func (f *follower) step(says string, holds func() bool) {
	f.Helper()
	f.stepUntil(time.Now().Add(5*time.Minute), says, holds)
}

// stepUntil is a step with an end of its own.
func (f *follower) stepUntil(end time.Time, says string, holds func() bool) {
	f.Helper()
	for ; !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) || f.ctx.Err() != nil {
			f.Fatalf("waited in vain until %s; the command began %v ago; status:\n%s", says,
				time.Since(f.stepped).Round(time.Second), f.status())
		}
	}
	fmt.Printf("%8.1f s  %s\n", time.Since(f.stepped).Seconds(), says)
}

// status returns the status of the autoscaler, or an empty text if there is none.
func (f *follower) status() string {
	object, err := f.cluster.Client.CoreV1().ConfigMaps("kube-system").Get(f.ctx, "loadline-autoscaler-status",
		metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return object.Data["status"]
}

// firstPlan is how long docs/platforms.md says that it takes at most from the begin of the command that starts the
// autoscaler to its first plan.
const firstPlan = 60 * time.Second

// plans waits for the first plan in the status: groups whose names begin with this grow for pods.
func (f *follower) plans(groups string) {
	f.Helper()
	growth := regexp.MustCompile(regexp.QuoteMeta(groups) + `\S*: [1-9][0-9]* for pods`)
	f.stepUntil(f.stepped.Add(firstPlan), "the status has a plan for the pods that wait",
		func() bool { return growth.MatchString(f.status()) })
}

// acts waits for a loop in mode act that has nothing to complain about.
func (f *follower) acts() {
	f.Helper()
	trouble := regexp.MustCompile(`(?m)^ *(warnings|problem|message|leftOut):`)
	f.step("a loop in mode act has ended without a problem", func() bool {
		status := f.status()
		return strings.Contains(status, "\nmode: act\n") && !trouble.MatchString(status)
	})
}

// web is a Deployment of the user. Two of its pods do not fit on a node of 2 cpus.
const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {%s}
      containers:
      - {name: web, image: registry.example/web:1, resources: {requests: {cpu: 1800m, memory: 1Gi}}}
`

// deploy creates or scales the Deployment, with pods for nodes with a label.
func (f *follower) deploy(replicas int, label string) {
	f.Helper()
	objects, err := harness.Objects(fmt.Appendf(nil, web, replicas, label))
	f.must(err)
	f.must(f.cluster.Apply(f.ctx, objects))
}
