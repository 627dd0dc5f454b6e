package cli

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loadline.dev/shim/autoscaler/config"
)

// The settings of the autoscaler that commands do not read, by paths as in readBy, each with the reason.
var (
	notRead = map[string]string{
		"mode":                                  "nothing is carried out",
		"scanInterval":                          "one question is asked",
		"engine":                                "a command has its own flags for the engine",
		"maxQuestionBytes":                      "a command has its own flags for the engine",
		"view":                                  "a command has a view of its own",
		"bindAddress":                           "nothing is served",
		"clusterAutoscalerNamespaces":           "nothing is carried out",
		"exposePage":                            "nothing is served",
		"profiling":                             "nothing is served",
		"namespace":                             "no status is written",
		"statusConfigMapName":                   "no status is written",
		"writeStatusConfigMap":                  "no status is written",
		"maxInactivity":                         "one question is asked",
		"clusterAutoscalerMetrics":              "nothing is served",
		"emitPerNodegroupMetrics":               "nothing is served",
		"kubeClientQps":                         "kubeconfig and its flags say how the API server is asked",
		"kubeClientBurst":                       "kubeconfig and its flags say how the API server is asked",
		"leaderElection.":                       "nothing is carried out",
		"cloudProvider.":                        "groups are those of --groups, or derived from the nodes",
		"sizing.nodeGroups":                     "groups that are sized are those of --groups",
		"slack.keep":                            "nothing is carried out",
		"slack.capacityBuffers":                 "buffers of others are not read",
		"scaleUp.batchIdle":                     "what is asked at one moment waits for no further pods",
		"scaleUp.batchMax":                      "what is asked at one moment waits for no further pods",
		"scaleUp.swapNotBegun":                  "nothing has been ordered",
		"scaleUp.capacityQuotas":                "quotas of the cluster are not read",
		"scaleDown.scaleDownDelayAfterAdd":      "nothing has been done",
		"scaleDown.scaleDownDelayAfterDelete":   "nothing has been done",
		"scaleDown.scaleDownDelayAfterFailure":  "nothing has been done",
		"scaleDown.scaleDownDelayTypeLocal":     "nothing has been done",
		"scaleDown.scaleDownSimulationTimeout":  "an answer is the same on each machine",
		"scaleDown.recentEvictionTime":          "nothing has been evicted",
		"scaleDown.minEvaluatedNodes":           "all nodes are looked at",
		"scaleDown.maxViewAge":                  "the cluster has just been read",
		"scaleDown.mostVanishedPercent":         "there is no loop before",
		"scaleDown.maxBulkSoftTaintCount":       "nothing is carried out",
		"scaleDown.maxBulkSoftTaintTime":        "nothing is carried out",
		"scaleDown.maxGracefulTerminationSec":   "nothing is carried out",
		"scaleDown.drainPriorityConfig":         "nothing is carried out",
		"scaleDown.maxPodEvictionTime":          "nothing is carried out",
		"scaleDown.evictionRetryInterval":       "nothing is carried out",
		"scaleDown.terminationHeadroom":         "nothing is carried out",
		"scaleDown.pollInterval":                "nothing is carried out",
		"scaleDown.nodeDeleteDelayAfterTaint":   "nothing is carried out",
		"scaleDown.cordonNodeBeforeTerminating": "nothing is carried out",
		"scaleDown.nodeDeletionDelayTimeout":    "nothing is carried out",
		"scaleDown.nodeDeletionBatcherInterval": "nothing is carried out",

		"scaleDown.unsafeDeletePodsDespiteDisruptionBudgets": "nothing is carried out",
		"scaleDown.daemonsetEvictionForEmptyNodes":           "nothing is carried out",
		"scaleDown.daemonsetEvictionForOccupiedNodes":        "nothing is carried out",
	}
	noUse   = map[string]string{"usageNamespace": "it asks nothing by what pods are expected to use"}
	noDrain = map[string]string{"scaleDown.": "no node is to go"}
	noMoves = map[string]string{"consolidation.": "no node is replaced", "decisions": "the command is one decision",
		"maxWork": "the engine's own limit holds"}
	noGrowth  = map[string]string{"scaleUp.": "no group grows, and pods that wait are counted all the same"}
	noSlack   = map[string]string{"slack.": "no room is kept"}
	notReadBy = map[string][]map[string]string{
		"plan":  nil,
		"drain": {noMoves, noGrowth, noSlack, noUse},
		"slack": {noDrain, noUse,
			{"consolidation.": "no node is replaced", "decisions": "the command has pods and slack grow alone"}},
		"rank": {noDrain, noMoves, noSlack, noUse, {"scaleUp.": "what each group would come to is told, whatever holds growth " +
			"back in a loop"}},
		"bill": {noSlack, noUse, {"decisions": "the command is one decision", "maxWork": "the engine's own limit holds",
			"consolidation.replacementRest": "nothing has been done",
			"scaleDown.":                    "nodes go because that saves money, however full they are",
			"scaleUp.":                      "no group grows for pods that wait, and new nodes are as good as there"}},
	}
)

// Each setting of the autoscaler is read by each command that has --config, or there is a reason why it is not.
func TestSettingsOfCommands(t *testing.T) {
	for command, further := range notReadBy {
		reasons := maps.Clone(notRead)
		for _, more := range further {
			maps.Copy(reasons, more)
		}
		used := map[string]bool{}
		for _, path := range config.Paths() {
			if reads(readBy[command], path) {
				if reasons[path] != "" {
					t.Errorf("%s: %s is read, and there is a reason why not", command, path)
				}
				continue
			}
			known := false
			for pattern := range reasons {
				if reads([]string{pattern}, path) {
					known, used[pattern] = true, true
				}
			}
			if !known {
				t.Errorf("%s: %s is not read, without a reason", command, path)
			}
		}
		for _, pattern := range slices.Sorted(maps.Keys(reasons)) {
			if !used[pattern] {
				t.Errorf("%s: a reason for %s, which is read", command, pattern)
			}
		}
	}
	for command, paths := range readBy {
		for _, path := range paths {
			if !slices.ContainsFunc(config.Paths(), func(p string) bool {
				return reads([]string{strings.TrimPrefix(path, "!")}, p)
			}) {
				t.Errorf("%s: %s is no setting", command, path)
			}
		}
	}
}

// The file of the autoscaler holds for a command, and flags win over it.
func TestConfigOfCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "autoscaler.yaml")
	for name, c := range map[string]struct {
		args, settings string
		// before, with the file, and with the flag over it there is such a line, in this order.
		lines []string
		flag  string
	}{
		"drain": {"drain -f ../../docs/shop.yaml --now 2026-11-20T12:00:00Z",
			"scaleDown: {scaleDownUtilizationThreshold: 0.4}\nmode: act",
			[]string{"BlockedByPod", "threshold of 40 %", "BlockedByPod"},
			"--scale-down-utilization-threshold=0.5"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: " + config.APIVersion + "\nkind: " + config.Kind + "\n" + c.settings + "\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			args := strings.Fields(c.args)
			for i, more := range [][]string{nil, {"--config", file}, {"--config", file, c.flag}} {
				out, errs, code := run(t, "loadline", "", slices.Concat(args, more)...)
				if code != 0 || !strings.Contains(out, c.lines[i]) {
					t.Errorf("%v: exit code %d, no %q in\n%s%s", more, code, c.lines[i], out, errs)
				}
			}
		})
	}
}

// A key that is none is refused, as in the autoscaler.
func TestConfigIsStrict(t *testing.T) {
	file := filepath.Join(t.TempDir(), "autoscaler.yaml")
	text := "apiVersion: " + config.APIVersion + "\nkind: " + config.Kind + "\nscaleDown: {unneeded: 1m}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"plan --groups x", "drain", "slack", "rank --groups x", "consolidate", "bill", "why n"} {
		_, errs, code := run(t, "loadline", "", append(strings.Fields(command), "-f", "x", "--config", file)...)
		if code != 2 || !strings.Contains(errs, `unknown field "scaleDown.unneeded"`) {
			t.Errorf("%s: exit code %d, %s", command, code, errs)
		}
	}
}
