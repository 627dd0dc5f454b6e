package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// keptBack is a sentence of `top` about kinds of a dump. A live cluster is not asked for them.
var keptBack = regexp.MustCompile(` Not looked at: .*\.`)

// Flags of the commands that are asked about the cluster of testdata/question.yaml.
const (
	atQuestionTime   = " --now 2026-11-20T12:00:00Z"
	ofQuestionGroups = " --groups " + questionGroups
)

// sameQuestions have the same answer however a cluster is read.
var sameQuestions = []string{
	"top",
	"top -o json --max-limits-over-allocatable memory=1.5",
	"top --lines 1,1.25,1.5,2,3",
	"score shop/wait-0 -o json",
	"fit shop/disk",
	"fit shop/wait-0 -o json",
	"fit -p testdata/pod.yaml",
	"why shop/web-0",
	"why shop/disk -o json",
	"why node/a-1" + atQuestionTime,
	"why a" + ofQuestionGroups + atQuestionTime,
	"why-not zoo/important --by-node",
	"why-not shop/disk a-2",
	"why-not zoo/important b" + ofQuestionGroups + atQuestionTime,
	"drain" + atQuestionTime,
	"drain -o json" + ofQuestionGroups + atQuestionTime,
	"plan" + ofQuestionGroups + atQuestionTime,
	"plan -o json" + ofQuestionGroups + atQuestionTime,
	"rank -o json" + ofQuestionGroups + atQuestionTime,
	"size -o json" + ofQuestionGroups + atQuestionTime,
	"slack -o json" + ofQuestionGroups + atQuestionTime,
	"bill" + atQuestionTime,
	"bill -o json" + ofQuestionGroups + atQuestionTime,
	"consolidate -o json" + ofQuestionGroups + atQuestionTime,
	"simulate",
	"scenario",
}

// A live cluster and a dump of it give the same answers, and a command lists each kind of a live cluster once. The
// cluster has nodes, pods that run and wait, controllers, daemon pods, budgets, volumes, device classes and profiles of
// use. Pods of a dump count as tried by a scheduler, so the pod that none has tried is left out.
func TestLiveClusterGivesWhatItsDumpGives(t *testing.T) {
	dump, _ := dumpOfQuestion(t, "untried")
	kubeconfig, paths := apiServer(t, dump)
	for _, line := range sameQuestions {
		t.Run(line, func(t *testing.T) {
			args := strings.Fields(line)
			want, errs, code := run(t, "loadline", "", append(slices.Clone(args), "-f", dump)...)
			if code != 0 || want == "" {
				t.Errorf("exit %d of the dump: %s", code, errs)
			}
			want = keptBack.ReplaceAllString(strings.ReplaceAll(want, dump, "test"), "")
			*paths = nil
			got, errs, code := run(t, "loadline", "", append(args, "--kubeconfig", kubeconfig, "--context", "test")...)
			if diff := cmp.Diff(want, got); diff != "" || code != 0 {
				t.Errorf("exit %d, %s (-dump +live): %s", code, errs, diff)
			}
			slices.Sort(*paths)
			if lists := slices.Compact(slices.Clone(*paths)); len(lists) < len(*paths) || len(lists) < 2 {
				t.Errorf("the lists of one command: %q", *paths)
			}
		})
	}
}

// spreadFile is the configuration of a scheduler with a default spread constraint.
func spreadFile(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	const text = `{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration,
profiles: [{pluginConfig: [
{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [
{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]}}]}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The recording of an autoscaler gives the answers of a dump, without --now. An engine is given no pods that are not
// to be placed, nor those that it plans itself, and one name of equal pods; those are left out here. It is given no
// service either, by which default spread constraints count pods.
func TestRecordingGivesWhatTheDumpGives(t *testing.T) {
	dump, nodes := dumpOfQuestion(t, "untried", "wait-1", "gated", "going", "net-2", "room-0", "room-1")
	a := newAsker(t)
	a.kubeconfig, _ = apiServer(t, dump)
	a.cloud.(*heaven).nodes = nodes
	spread := " --scheduler-config-file " + spreadFile(t)
	recording := a.recording(1, strings.Fields(spread)...)
	for _, line := range append([]string{"why-not shop/wait-0" + spread,
		"plan -o json" + spread + ofQuestionGroups + atQuestionTime}, sameQuestions...) {
		t.Run(line, func(t *testing.T) {
			args := strings.Fields(line)
			want, errs, code := run(t, "loadline", "", append(slices.Clone(args), "-f", dump)...)
			if code != 0 || want == "" {
				t.Errorf("exit %d of the dump: %s", code, errs)
			}
			want = keptBack.ReplaceAllString(strings.ReplaceAll(want, dump, recording), "")
			if strings.HasPrefix(line, "why-not shop/wait-0") && !strings.Contains(want, "topology spread") {
				t.Errorf("no default constraint is in the answer: %s", want)
			}
			args = strings.Fields(strings.ReplaceAll(line, atQuestionTime, ""))
			got, errs, code := run(t, "loadline", "", append(args, "-f", recording)...)
			if diff := cmp.Diff(want, keptBack.ReplaceAllString(got, "")); diff != "" || code != 0 {
				t.Errorf("exit %d, %s (-dump +recording): %s", code, errs, diff)
			}
		})
	}
}
