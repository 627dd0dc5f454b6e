package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	restclient "k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/unknownfields"
	"loadline.dev/shim/usage/profile"
	"loadline.dev/shim/usage/store"
)

// ear is an engine that remembers the changes and questions that it gets, and answers nothing.
type ear struct {
	loadlinev1.UnimplementedAutoscalerServer
	loadlinev1.UnimplementedClusterStateServer
	address string

	plans chan *loadlinev1.PlanLoopRequest
	parts chan proto.Message // questions of commands

	mu   sync.Mutex
	told *loadlinev1.Changes // guarded by mu
}

func newEar(t *testing.T) *ear {
	t.Helper()
	folder, err := os.MkdirTemp("", "ear") // t.TempDir() grows too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	e := &ear{address: "unix://" + filepath.Join(folder, "s"), plans: make(chan *loadlinev1.PlanLoopRequest, 100),
		parts: make(chan proto.Message, 100)}
	listener, err := net.Listen("unix", filepath.Join(folder, "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	loadlinev1.RegisterAutoscalerServer(server, e)
	loadlinev1.RegisterClusterStateServer(server, e)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return e
}

func (e *ear) Sync(_ context.Context, r *loadlinev1.SyncRequest) (*loadlinev1.SyncResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if chunk := r.GetChanges().GetFullList(); e.told == nil || chunk != nil && chunk.GetIndex() == 0 {
		e.told = &loadlinev1.Changes{}
	}
	proto.Merge(e.told, r.GetChanges())
	return &loadlinev1.SyncResponse{Epoch: r.GetChanges().GetEpoch(), Revision: r.GetChanges().GetRevision()}, nil
}

func (e *ear) Drop(context.Context, *loadlinev1.DropRequest) (*loadlinev1.DropResponse, error) {
	return &loadlinev1.DropResponse{}, nil
}

// PlanLoop hands on the question with the cluster that it is about.
func (e *ear) PlanLoop(_ context.Context, r *loadlinev1.PlanLoopRequest) (*loadlinev1.PlanLoopResponse, error) {
	asked := proto.CloneOf(r)
	asked.Cluster = &loadlinev1.PlanLoopRequest_Own{Own: e.own()}
	e.plans <- asked
	return &loadlinev1.PlanLoopResponse{}, nil
}

// own is the cluster that the engine holds, as one of a question.
func (e *ear) own() *loadlinev1.Changes {
	e.mu.Lock()
	defer e.mu.Unlock()
	own := proto.CloneOf(e.told)
	own.View, own.Epoch, own.BaseRevision, own.Revision, own.FullList, own.TimeS = "", 0, 0, 0, nil, 0
	return own
}

// heaven is a cloud that has what a file says of node groups.
type heaven struct {
	cloud.Provider
	groups []nodegroup.NodeGroup
	nodes  []*v1.Node
	rich   bool // it tells more than a file can
}

func (h *heaven) Refresh(context.Context) error { return nil }

func (h *heaven) Groups(_ context.Context, defaults *externalgrpc.NodeGroupAutoscalingOptions) ([]cloud.Group, error) {
	var out []cloud.Group
	for i := range h.groups {
		spec := &h.groups[i].Spec
		group := cloud.Group{ID: h.groups[i].Name(), Min: int(spec.Min), Max: int(spec.Max)}
		machines := map[string]bool{}
		for _, node := range h.nodes {
			if spec.Has(node.Labels) && !machines[node.Spec.ProviderID] {
				machines[node.Spec.ProviderID] = true
				group.Instances = append(group.Instances, &externalgrpc.Instance{Id: node.Spec.ProviderID,
					Status: &externalgrpc.InstanceStatus{InstanceState: externalgrpc.InstanceState_INSTANCE_RUNNING}})
			}
		}
		group.Target = len(group.Instances)
		if spec.Target != nil {
			group.Target = int(*spec.Target)
		}
		if s := spec.ScaleDown; s != nil { // as the file of the test has it
			group.Options = proto.CloneOf(defaults)
			group.Options.ZeroOrMaxNodeScaling = s.ZeroOrMaxNodeScaling
			group.Options.ScaleDownUtilizationThreshold = *s.ScaleDownUtilizationThreshold
			group.Options.ScaleDownUnneededDuration = durationpb.New(s.ScaleDownUnneededTime.Duration)
		}
		if h.rich && h.groups[i].Name() == "b" {
			group.Problem = errors.New("not now")
			group.Options.MaxNodeProvisionDuration = durationpb.New(time.Hour)
			group.Options.MaxNodeStartupDuration = durationpb.New(time.Hour)
			group.Instances = append(group.Instances, &externalgrpc.Instance{Id: "sim://new",
				Status: &externalgrpc.InstanceStatus{InstanceState: externalgrpc.InstanceState_INSTANCE_CREATING}})
		}
		out = append(out, group)
	}
	return out, nil
}

func (h *heaven) TemplateNode(_ context.Context, id string) (*v1.Node, error) {
	for i := range h.groups {
		if h.groups[i].Name() == id {
			return h.groups[i].Spec.Template, nil
		}
	}
	return nil, nil
}

func (h *heaven) NodePrice(context.Context, *v1.Node) (*float64, error) {
	if h.rich {
		return new(0.25), nil
	}
	return nil, nil
}

// asker has the autoscaler and the command ask an ear about one API server.
type asker struct {
	*testing.T
	ear        *ear
	kubeconfig string
	cloud      cloud.Provider
}

// questionTime is when both ask.
var questionTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const questionGroups = "testdata/question-groups.yaml"

func newAsker(t *testing.T) *asker {
	file, err := nodegroup.Load(questionGroups)
	if err != nil {
		t.Fatal(err)
	}
	dump, nodes := dumpOfQuestion(t)
	kubeconfig, _ := apiServer(t, dump)
	return &asker{t, newEar(t), kubeconfig, &heaven{groups: file.Groups, nodes: nodes}}
}

// dumpOfQuestion returns a file with the objects of testdata/question.yaml, without those of these names, and with
// profiles of use. It also returns the nodes.
func dumpOfQuestion(t *testing.T, without ...string) (file string, nodes []*v1.Node) {
	t.Helper()
	var items []json.RawMessage
	data, err := os.ReadFile("testdata/question.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		item, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		var node v1.Node
		switch wrong := json.Unmarshal(item, &node); {
		case slices.Contains(without, node.Name):
			continue
		case wrong == nil && node.Kind == "Node":
			nodes = append(nodes, &node)
		}
		items = append(items, item)
	}
	file = filepath.Join(t.TempDir(), "dump.json")
	items = append(items, usageOfQuestion(t))
	data, err = json.Marshal(map[string]any{"items": items})
	if err := errors.Join(err, os.WriteFile(file, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	return file, nodes
}

// usageOfQuestion is a ConfigMap with a profile of the pods of the cluster.
func usageOfQuestion(t *testing.T) json.RawMessage {
	web := profile.Profile{Workload: profile.Workload{Namespace: "shop", Kind: "Deployment", Name: "web"}, Samples: 99,
		Days: 7, First: questionTime.Unix() - 7*86400, Last: questionTime.Unix()}
	for hour := range profile.Hours {
		web.Day[profile.CPU][hour], web.Day[profile.Memory][hour] = 100, 1<<20
	}
	shards, _ := store.Encode(&store.Head{Collected: questionTime.Unix(), Days: 7, Percent: 90}, []profile.Profile{web})
	data, err := json.Marshal(&v1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: store.DefaultNamespace, Name: store.Name(0)},
		BinaryData: map[string][]byte{store.Key: shards[0]}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// byCommand returns what `plan` or `slack` asks with these flags.
func (a *asker) byCommand(command string, args ...string) *loadlinev1.PlanLoopRequest {
	a.Helper()
	_, errs, _ := run(a.T, "loadline", "", append([]string{command, "--engine", a.ear.address, "--kubeconfig",
		a.kubeconfig, "--context", "test", "--groups", questionGroups, "--now", questionTime.Format(time.RFC3339)},
		args...)...)
	return a.heard(errs)
}

// byAutoscaler returns what the autoscaler asks first with these flags.
func (a *asker) byAutoscaler(args ...string) *loadlinev1.PlanLoopRequest {
	a.Helper()
	conn, err := engine.Open(a.ear.address)
	if err != nil {
		a.Fatal(err)
	}
	defer conn.Close()
	stop := a.runAutoscaler(conn, args...)
	asked := a.heard("")
	for deadline := time.Now().Add(20 * time.Second); !a.complete(asked) && time.Now().Before(deadline); {
		asked = a.heard("")
	}
	stop()
	for len(a.ear.plans) > 0 { // of a further loop
		<-a.ear.plans
	}
	return asked
}

// runAutoscaler runs an autoscaler with these flags until stop is called.
func (a *asker) runAutoscaler(conn engine.Conn, args ...string) (stop func()) {
	a.Helper()
	set := pflag.NewFlagSet("autoscaler", pflag.ContinueOnError)
	flags := config.AddFlags(set, false)
	cluster := clusterFlags{flags: newClusterFlags()}
	*cluster.flags.KubeConfig, *cluster.flags.Context = a.kubeconfig, "test"
	err := set.Parse(append(args, "--leader-elect=false", "--bind-address=", "--scan-interval=1s"))
	var settings config.Configuration
	if err == nil {
		settings, _, err = flags.Configuration("")
	}
	var files *config.Loaded
	if err == nil {
		files, err = settings.ReadFiles()
	}
	var rest *restclient.Config
	if err == nil {
		rest, err = cluster.restConfig()
	}
	if err != nil {
		a.Fatalf("%v: %v", args, err)
	}
	rest.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return reader{next} }
	client, err := unknownfields.NewClient(rest)
	if err != nil {
		a.Fatal(err)
	}
	scaler := autoscaler.New(&settings, files, conn, client, fake.NewSimpleDynamicClient(runtime.NewScheme()), a.cloud,
		"test")
	scaler.Clock = autoscaler.Clock{Now: func() time.Time { return questionTime },
		Passed: func() time.Duration { return 0 }}
	var sized []nodegroup.NodeGroup
	for _, group := range a.cloud.(*heaven).groups {
		if group.Spec.Size != nil {
			sized = append(sized, group)
		}
	}
	scaler.Size(sized)
	ctx, cancel := context.WithCancel(a.Context())
	ended := make(chan error)
	go func() { ended <- scaler.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			a.Fatal(err)
		}
	}
}

// complete says whether a question has the profiles of use if it counts them: the autoscaler does not wait for them.
func (a *asker) complete(asked *loadlinev1.PlanLoopRequest) bool {
	return asked.GetFit().GetLoadLine().GetExpectedUse() == nil ||
		slices.ContainsFunc(asked.GetOwn().GetObjects(), func(o *loadlinev1.ClusterObject) bool {
			return o.GetKind() == loadlinev1.ObjectKind_WORKLOAD_USAGE
		})
}

// reader lets no request pass that writes: the autoscaler writes its status, which is no matter here.
type reader struct{ next http.RoundTripper }

func (r reader) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		return r.next.RoundTrip(request)
	}
	return nil, errors.New("only reads")
}

// heard returns the next question that the ear hears.
func (a *asker) heard(problem string) *loadlinev1.PlanLoopRequest {
	a.Helper()
	select {
	case asked := <-a.ear.plans:
		return asked
	case <-time.After(time.Minute):
		a.Fatalf("no question: %s", problem)
	}
	return nil
}

// ofLoops are the fields of a question by which loops that follow each other differ from a question that is asked once,
// each with the reason.
var ofLoops = map[string]string{
	"compact":                 "the command tells of pods and nodes by name, the autoscaler knows them",
	"max_milliseconds":        "the answer of a command is the same on each machine",
	"batch_idle_milliseconds": "who asks once waits for no further pods",
	"batch_max_milliseconds":  "who asks once waits for no further pods",
	"fleet.swaps":             "who asks once has ordered nothing",
}

// ofCloud are the fields that only a cloud can fill, each with the reason.
var ofCloud = map[string]string{
	"groups.growth.provider_usd_per_hour":          "a file states the price as node_usd_per_hour",
	"groups.cloud.problem":                         "only who is asked may not answer",
	"groups.cloud.machines":                        "a file has no machines without a node, and none that fail",
	"groups.cloud.max_node_provision_milliseconds": "an option of a cloud's group alone",
	"groups.cloud.max_node_startup_milliseconds":   "an option of a cloud's group alone",
}

// differing adds the paths of the fields in which two messages differ.
func differing(a, b protoreflect.Message, path string, into map[string]bool) {
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		name := path + string(field.Name())
		x, y := a.Get(field), b.Get(field)
		switch {
		case a.Has(field) == b.Has(field) && x.Equal(y):
		case field.IsMap():
			into[name] = true
		case field.IsList() && field.Message() != nil && x.List().Len() == y.List().Len():
			for j := range x.List().Len() {
				differing(x.List().Get(j).Message(), y.List().Get(j).Message(), name+".", into)
			}
		case field.Message() != nil && !field.IsList() && a.Has(field) && b.Has(field):
			differing(x.Message(), y.Message(), name+".", into)
		default:
			into[name] = true
		}
	}
}

// compare fails if what both ask with these flags differs in other fields than may differ.
func (a *asker) compare(t *testing.T, args ...string) {
	a = &asker{t, a.ear, a.kubeconfig, a.cloud}
	sameLoop(t, a.byAutoscaler(args...), a.byCommand("plan", args...))
}

// sameLoop fails if two questions differ in other fields than may differ, and these.
func sameLoop(t *testing.T, by, command *loadlinev1.PlanLoopRequest, but ...string) {
	t.Helper()
	different := map[string]bool{}
	differing(by.ProtoReflect(), command.ProtoReflect(), "", different)
	for field := range different {
		if ofLoops[field] == "" && !slices.Contains(but, field) {
			t.Errorf("they differ in %s", field)
		}
	}
	if t.Failed() {
		t.Errorf("(-autoscaler +command)\n%s", cmp.Diff(by, command, protocmp.Transform()))
	}
}

// With the same groups, clock and state the command asks what the autoscaler asks, of the same API server, byte for
// byte; see the maps above for what is beside it.
func TestPlanAsksWhatTheAutoscalerAsks(t *testing.T) {
	a := newAsker(t)
	a.compare(t)
	if t.Failed() {
		return
	}
	by := a.byAutoscaler()
	for _, part := range []struct {
		name string
		size int
	}{{"daemon pods", len(by.GetDaemonPods()) - 2}, {"shared nodes", len(by.GetOwn().GetNodes()) - 8},
		{"marks", len(by.GetFleet().GetMarks()) - 1}, {"sized groups", len(by.GetSized()) - 1},
		{"waiting pods", len(by.GetPods()) - 9}} {
		if part.size != 0 {
			t.Errorf("%s: %d more than the cluster of the test has", part.name, part.size)
		}
	}
}

// The same with each option that both have, alone.
func TestPlanAsksByEachOption(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	values := maps.Clone(optionValues)
	values["rank-policy"] = write("rank.yaml", "apiVersion: loadline.dev/v1alpha1\nkind: RankPolicy\ndamper: 0.5\n"+
		"strategies: [priority, price]\npriorities: {\"10\": [a], \"20\": [b, s]}\n")
	values["scheduler-config-file"] = write("scheduler.yaml", schedulerOfQuestion)
	values["prices"] = write("prices.csv", "instance_type,region,usd_per_hour\nm5.large,here,0.1\n")
	set := pflag.NewFlagSet("both", pflag.ContinueOnError)
	config.AddFlagsOf(set, config.Default(), func(path string) bool { return reads(readBy["plan"], path) })
	a, options := newAsker(t), 0
	set.VisitAll(func(flag *pflag.Flag) {
		value, known := values[flag.Name]
		if !known {
			value = otherValue(t, flag)
		}
		options++
		args := strings.Split("--"+flag.Name+"="+value, " & ")
		t.Run(flag.Name, func(t *testing.T) { a.compare(t, args...) })
	})
	if options < 50 {
		t.Errorf("only %d options", options)
	}
}

// A cloud that tells more than a file can leads to other questions in the fields of ofCloud, and in no others.
func TestFieldsThatOnlyACloudFills(t *testing.T) {
	a := newAsker(t)
	plan := a.byCommand("plan")
	told := *a.cloud.(*heaven)
	told.rich = true
	a.cloud = &told
	different := map[string]bool{}
	differing(a.byAutoscaler().ProtoReflect(), plan.ProtoReflect(), "", different)
	maps.DeleteFunc(different, func(field string, _ bool) bool { return ofLoops[field] != "" })
	for field := range different {
		if ofCloud[field] == "" {
			t.Errorf("they differ in %s, which has no reason", field)
		}
	}
	for field := range ofCloud {
		if !different[field] {
			t.Errorf("a reason for %s, in which they do not differ", field)
		}
	}
}

const schedulerOfQuestion = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: other
- schedulerName: default-scheduler
  plugins: {filter: {disabled: [{name: NodePorts}]}}
  pluginConfig:
  - {name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]}}
  - {name: NodeResourcesLimitAware, args: {engineAddress: inprocess, maxLimitsOverAllocatable: {memory: 1.5}, expectedUse: {mode: "On"}}}
`

// optionValues are what options are set to of which no value can be made up.
var optionValues = map[string]string{"decisions": "scale-up", "cores-total": "7:9", "memory-total": "7:9",
	"gpu-total": "t4:7:9", "slack-basis": "capacity", "slack-version": "2b", "slack-common-resources": "example.com/x",
	"slack-class-labels": "disk", "slack-class": "disk=ssd;off", "slack-group": "a;off", "slack-bound-by-pods": "true",
	"slack-max-extra-cpu": "64", "slack-max-extra-memory": "256Gi", "slack-max-copies-cpu": "7",
	"slack-max-copies-memory": "7Gi", "slack-namespace": "shop", "rank-preset": "proposal", "strategies": "least-waste",
	"upstream-defects": "namespace-selector-sees-no-labels", "commitment": "m5=4 & --rank-preset=proposal",
	"preferred-table": "learned & --rank-preset=proposal",
	"preferred-node":  "8:32Gi & --rank-preset=proposal", "kubernetes-version": "1.37", "max-limits-over-allocatable": "memory=1.5",
	"line-node-label-prefix": "line & --max-limits-over-allocatable=memory=1.5",
	"line-exempt-namespaces": "zoo & --max-limits-over-allocatable=memory=1.5",
	"interruption-risks":     "m5.large=0.1", "node-budgets": "10%", "pod-disruption-costs": "1000=0.01",
	"replacement-windows": "0 22 * * 1-5 6h", "startup-taint": "example.com/starting", "allowed-scheduler-names": "other",
	"bypassed-scheduler-names": "other", "scale-down-utilization-threshold": "0.75"}

// otherValue returns a value of an option that is not its default.
func otherValue(t *testing.T, flag *pflag.Flag) string {
	t.Helper()
	switch flag.Value.Type() {
	case "bool":
		return strconv.FormatBool(flag.DefValue != "true")
	case "int":
		number, err := strconv.Atoi(flag.DefValue)
		if err != nil {
			t.Fatal(err)
		}
		return strconv.Itoa(number + 1)
	case "float64":
		number, err := strconv.ParseFloat(flag.DefValue, 64)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(number + 0.25)
	case "share":
		return "0.5"
	case "duration":
		length, err := time.ParseDuration(flag.DefValue)
		if err != nil {
			t.Fatal(err)
		}
		return (length + time.Minute).String()
	}
	return "other"
}
