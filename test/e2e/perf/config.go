// Package perf runs upstream's scheduler_perf with and without limit-aware scoring: the default profile, the
// plugin on both transports, and a stock scheduler with the gateway as extender. `make bench-scheduler` runs it.
package perf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loadline.dev/test/e2e/harness"
)

// A Case is one way to set up the scheduler.
type Case string

const (
	Default   Case = "Default"
	InProcess Case = "InProcess"
	Socket    Case = "Socket"
	Extender  Case = "Extender"
	// The plugin where pods count by the profiles of their workloads.
	InProcessProfiles Case = "InProcessProfiles"
	SocketProfiles    Case = "SocketProfiles"
	// The pair that shows opportunistic batching. With the system's default constraints of PodTopologySpread no pod
	// can be signed; and batching acts only while each pod fills the node that it is placed on. So these have
	// neither: one pod per node.
	DefaultBatching   Case = "DefaultBatching"
	InProcessBatching Case = "InProcessBatching"
	// From 1.37 on batches also act where nodes take several pods: the pods of the first cases, without default
	// constraints, with batches and without.
	DefaultShared           Case = "DefaultShared"
	InProcessShared         Case = "InProcessShared"
	SocketShared            Case = "SocketShared"
	DefaultSharedBatching   Case = "DefaultSharedBatching"
	InProcessSharedBatching Case = "InProcessSharedBatching"
	SocketSharedBatching    Case = "SocketSharedBatching"
)

// AllCases are all cases, in the order in which they are reported.
var AllCases = []Case{Default, InProcess, Socket, Extender, InProcessProfiles, SocketProfiles, DefaultBatching,
	InProcessBatching, DefaultShared, InProcessShared, SocketShared, DefaultSharedBatching, InProcessSharedBatching,
	SocketSharedBatching}

// CasesOf returns the cases that a minor version of Kubernetes has.
func CasesOf(minor string) []Case {
	if minor == "1.36" {
		return slices.DeleteFunc(slices.Clone(AllCases), Case.shared)
	}
	return AllCases
}

func (c Case) batching() bool { return strings.HasSuffix(string(c), "Batching") }

func (c Case) shared() bool { return strings.Contains(string(c), "Shared") }

func (c Case) profiles() bool { return strings.HasSuffix(string(c), "Profiles") }

// transport returns InProcess or Socket, by which the plugin of a case asks its engine; empty: it has no plugin.
func (c Case) transport() Case {
	for _, transport := range []Case{InProcess, Socket} {
		if strings.HasPrefix(string(c), string(transport)) {
			return transport
		}
	}
	return ""
}

// baseline is the case without the plugin that a case is compared with.
func (c Case) baseline() Case {
	for _, transport := range []Case{InProcess, Socket, Extender} {
		if rest, ok := strings.CutPrefix(string(c), string(transport)); ok {
			return Default + Case(strings.TrimSuffix(rest, "Profiles"))
		}
	}
	return c
}

// InitPods are placed before the measurement starts.
const InitPods = 1000

// settings of one run.
type settings struct {
	dir             string // for the files that are written
	socket          string // of loadlined
	extenderAddress string // of the gateway
	nodes, pods     int    // nodes, and pods that are measured
	minor           string // of Kubernetes
	weights         harness.Weights
}

// measuredNamespace is where the pods are that are measured; those before them are elsewhere.
const measuredNamespace = "measured"

// timeout of the plugin's question, longer than its default: on a few cores, which run etcd and the API server as well,
// a daemon may wait that long for one, and a run counts only if nearly all questions are answered.
const timeout = "100ms"

// schedulerConfig is the KubeSchedulerConfiguration of a case.
func (s settings) schedulerConfig(c Case) string {
	var b strings.Builder
	b.WriteString("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
	if c == Extender {
		fmt.Fprintf(&b, `extenders:
- urlPrefix: http://%s
  prioritizeVerb: prioritize
  weight: %d
  nodeCacheCapable: true
  ignorable: true
  httpTimeout: 200ms
`, s.extenderAddress, s.weights.Extender)
	}
	b.WriteString("profiles:\n- schedulerName: default-scheduler\n")
	address := ""
	switch c.transport() {
	case InProcess:
		address = "inprocess"
	case Socket:
		address = "unix://" + s.socket
	}
	if address != "" {
		fmt.Fprintf(&b, "  plugins:\n    multiPoint:\n      enabled:\n      - name: NodeResourcesLimitAware\n"+
			"        weight: %d\n", s.weights.Plugin)
	}
	if address != "" || c.batching() || c.shared() {
		b.WriteString("  pluginConfig:\n")
	}
	if address != "" {
		fmt.Fprintf(&b, "  - name: NodeResourcesLimitAware\n    args:\n      engineAddress: %s\n      timeout: %s\n",
			address, timeout)
	}
	if c.profiles() {
		fmt.Fprintf(&b, "      expectedUse: {mode: \"On\"}\n      usageNamespace: %s\n", usageNamespace)
	}
	if c.batching() || c.shared() {
		b.WriteString("  - name: PodTopologySpread\n    args:\n      defaultingType: List\n")
	}
	return b.String()
}

// podTemplate is scheduler_perf's default pod with limits above its requests. Its nodes have 4 CPUs.
const podTemplate = `apiVersion: v1
kind: Pod
metadata:
  generateName: pod-
spec:
  containers:
  - image: registry.k8s.io/pause:3.10.2
    name: pause
    resources:
      requests: {cpu: %s, memory: 500Mi}
      limits: {cpu: %s, memory: 1000Mi}
`

// podsOf returns how many pods of a case are placed before the measurement, how many are measured, and what they are.
func (s settings) podsOf(c Case) (initial, measured int, template string) {
	if c.batching() && !c.shared() {
		return 0, s.nodes, fmt.Sprintf(podTemplate, "3", "6")
	}
	return InitPods, s.pods, fmt.Sprintf(podTemplate, "100m", "200m")
}

// ownedIf returns a template, which has the owner of pods with profiles on a condition.
func ownedIf(has bool, template string) string {
	if !has {
		return template
	}
	return strings.Replace(template, "metadata:\n", owner, 1)
}

// signatures has all pods of an operation sign alike. From 1.37 on scheduler_perf gives each pod a label of its own
// unless an option says otherwise, and labels are part of a signature: no pod would ever be placed by a hint. 1.36 has
// neither label nor option.
func (s settings) signatures(pods int) string {
	if s.minor == "1.36" {
		return ""
	}
	return fmt.Sprintf("\n    signatureBatchSize: %d", max(pods, 1))
}

// write writes the configuration of a case for scheduler_perf, and returns the path of its file.
func (s settings) write(c Case) (string, error) {
	initial, measured, template := s.podsOf(c)
	files := map[string]string{
		"scheduler.yaml": s.schedulerConfig(c),
		"pod.yaml":       template,
		"measured.yaml":  ownedIf(c.profiles(), template),
		"performance-config.yaml": fmt.Sprintf(`- name: %s
  featureGates:
    OpportunisticBatching: %t
  defaultPodTemplatePath: %s/pod.yaml
  schedulerConfigPath: %s/scheduler.yaml
  workloadTemplate:
  - opcode: createNodes
    countParam: $initNodes
  - opcode: createPods
    countParam: $initPods%s
  - opcode: createPods
    countParam: $measurePods
    namespace: %s
    podTemplatePath: %s/measured.yaml
    collectMetrics: true%s
  workloads:
  - name: SchedulingBasic
    params:
      initNodes: %d
      initPods: %d
      measurePods: %d
`, c, c.batching(), s.dir, s.dir, s.signatures(initial), measuredNamespace,
			s.dir, s.signatures(measured), s.nodes, initial, measured),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	return filepath.Join(s.dir, "performance-config.yaml"), nil
}
