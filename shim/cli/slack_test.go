package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/slack"
)

func slackJSON(t *testing.T, args string) slackAnswer {
	t.Helper()
	out, errs, code := run(t, "loadline", "",
		append([]string{"slack", "-f", "testdata/slack.yaml", "-o", "json"}, strings.Fields(args)...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var got slackAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

const mi = 1 << 20

// Requested are 2400m and 3000Mi. Copies keep 1000m and 6000Mi, one node each: more than a tenth of it.
func TestSlackOfARate(t *testing.T) {
	got := slackJSON(t, "--extra-capacity-min-rate 10%")
	if len(got.Placeholders) != 1 ||
		got.Placeholders[0] != (slackShape{"Deployment shop/burst", "copy", 500, 3000 * mi, 2, 2}) {
		t.Errorf("placeholders %+v", got.Placeholders)
	}
	if len(got.Classes) != 1 || got.Classes[0].Wanted != (slackAmounts{240, 300 * mi}) ||
		got.Classes[0].Ready != (slackAmounts{1000, 6000 * mi}) ||
		got.Classes[0].Status != "ready" {
		t.Errorf("classes %+v", got.Classes)
	}
}

// Half of 6000m and 24000Mi: 3000m and 12000Mi, of which copies keep 1000m and 6000Mi. 2000m and 6000Mi are left, in
// pieces of at most 400m and 1600Mi: five of 400m and 1200Mi.
func TestSlackOfCapacity(t *testing.T) {
	got := slackJSON(t, "--extra-capacity-min-rate 0.5 --slack-basis capacity --literal")
	var standard slackShape
	for _, shape := range got.Placeholders {
		if shape.Kind == "standard" {
			standard = shape
		}
	}
	if standard.CPUMilli != 400 || standard.MemoryBytes != 1200*mi || standard.Count != 5 {
		t.Errorf("standard %+v", standard)
	}
	// Nodes have 700m, 700m and 1200m left: 1 + 1 + 3 pieces.
	if standard.Placed != 5 || len(got.Nodes) != 0 {
		t.Errorf("placed %d, nodes %v", standard.Placed, got.Nodes)
	}
	// 15 pieces of 400m: all 6000m, at every rate.
	if got.Literal == nil || got.Literal.Placeholders != 15 || got.Literal.CPUMilli != 400 ||
		got.Literal.PercentOfCapacity != 100 {
		t.Errorf("literal %+v", got.Literal)
	}
	// 3000m less the 800m that the biggest pods request, once for each resource.
	if got.Literal.RemainingCPU2a != 3000-2*800 || got.Literal.RemainingCPU2b != 3000-800 {
		t.Errorf("literal %+v", got.Literal)
	}
}

func documents(t *testing.T, form string) []string {
	t.Helper()
	out, errs, code := run(t, "loadline", "", "slack", "-f", "testdata/slack.yaml", "--slack-basis",
		"capacity", "--extra-capacity-min-rate", "50%", "-o", form)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	return strings.Split(strings.TrimPrefix(out, "---\n"), "---\n")
}

func TestSlackAsDeployments(t *testing.T) {
	replicas := map[bool]int32{}
	for _, document := range documents(t, "deployments") {
		switch {
		case strings.Contains(document, "kind: PriorityClass"):
			var class schedulingv1.PriorityClass
			if err := yaml.UnmarshalStrict([]byte(document), &class); err != nil {
				t.Fatal(err)
			}
			if class.Value != -10 || *class.PreemptionPolicy != v1.PreemptNever {
				t.Errorf("%+v", class)
			}
		case strings.Contains(document, "kind: Deployment"):
			var deployment appsv1.Deployment
			if err := yaml.UnmarshalStrict([]byte(document), &deployment); err != nil {
				t.Fatal(err)
			}
			pod := deployment.Spec.Template
			if pod.Labels[slack.PlaceholderLabel] == "" || *pod.Spec.TerminationGracePeriodSeconds != 0 ||
				pod.Spec.PriorityClassName != slack.PriorityClassName ||
				*pod.Spec.PreemptionPolicy != v1.PreemptNever || pod.Labels["app"] != "" {
				t.Errorf("%s", document)
			}
			isCopy := deployment.Namespace == "shop"
			replicas[isCopy] += *deployment.Spec.Replicas
			if isCopy && len(pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) != 2 {
				t.Errorf("copies are not kept apart: %s", document)
			}
			if !isCopy && pod.Spec.NodeSelector["topology.kubernetes.io/zone"] != "a" {
				t.Errorf("not held to its class: %s", document)
			}
		}
	}
	if replicas[true] != 2 || replicas[false] != 5 {
		t.Errorf("replicas %v", replicas)
	}
}

func TestSlackAsCapacityBuffers(t *testing.T) {
	templates, buffers := map[string]v1.PodTemplate{}, 0
	for _, document := range documents(t, "capacitybuffer") {
		switch {
		case strings.Contains(document, "kind: PodTemplate\n"):
			var template v1.PodTemplate
			if err := yaml.UnmarshalStrict([]byte(document), &template); err != nil {
				t.Fatal(err)
			}
			templates[template.Namespace+"/"+template.Name] = template
		case strings.Contains(document, "kind: CapacityBuffer"):
			var buffer slack.CapacityBuffer
			if err := yaml.UnmarshalStrict([]byte(document), &buffer); err != nil {
				t.Fatal(err)
			}
			template, ok := templates[buffer.Namespace+"/"+buffer.Spec.PodTemplateRef.Name]
			if !ok || buffer.Spec.Replicas == nil || *buffer.Spec.Replicas < 1 {
				t.Errorf("%+v", buffer)
			}
			if buffer.Namespace == "shop" && (*buffer.Spec.Replicas != 2 || template.Template.Labels["app"] != "burst" ||
				template.Template.Spec.Containers[0].Command != nil) {
				t.Errorf("%+v", template)
			}
			buffers++
		}
	}
	if buffers != 2 || len(templates) != 2 {
		t.Errorf("%d buffers, %d templates", buffers, len(templates))
	}
}

func TestSlackRefusesWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--extra-capacity-min-rate ten":                           "must be a number",
		"--slack-basis all":                                       "must be requested or capacity",
		"--slack-version 3":                                       "must be 1, 2a, 2b or pareto",
		"--slack-granularity 0":                                   "must be between 1 and 1000",
		"--extra-capacity-min-rate NaN":                           "--extra-capacity-min-rate: NaN",
		"--extra-capacity-min-rate=-10%":                          "--extra-capacity-min-rate: -0.1",
		"--extra-capacity-min-rate 100% --slack-basis capacity":   "no cluster is ever large enough",
		"--extra-capacity-min-rate 10% -f testdata/proposal.json": "",
	} {
		_, errs, code := run(t, "loadline", "",
			append([]string{"slack", "-f", "testdata/slack.yaml"}, strings.Fields(args)...)...)
		if (code == 0) != (want == "") || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d: %s", args, code, errs)
		}
	}
}

func TestSlackPageAndTable(t *testing.T) {
	for form, want := range map[string][]string{
		"table": {"7 of 7 placeholders fit now", "Deployment shop/burst"},
		"html":  {"<svg", "7 of 7 placeholders fit now", "Deployment shop/burst"},
	} {
		out, errs, code := run(t, "loadline", "", "slack", "-f", "testdata/slack.yaml", "--slack-basis",
			"capacity", "--extra-capacity-min-rate", "50%", "-o", form)
		for _, text := range want {
			if code != 0 || !strings.Contains(out, text) {
				t.Errorf("%s: exit %d: %s%s", form, code, errs, out)
			}
		}
	}
}

// Half of 2 cpus are two pieces of 500m. Half of 2010m are 1005m: planned anew two of 503m. With --state the two stay
// as they are, and one like them is added.
func TestSlackStateKeepsPlaceholders(t *testing.T) {
	cluster := func(milliCPU string) string {
		return fmt.Sprintf(`apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n0}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}}
- {apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: p}, spec: {nodeName: n0, containers: [
  {name: c, resources: {requests: {cpu: %s, memory: 1Gi}}}]}}
`, milliCPU)
	}
	ask := func(milliCPU string, args ...string) slackAnswer {
		t.Helper()
		out, errs, code := run(t, "loadline", cluster(milliCPU), append([]string{"slack", "-f", "-", "-o", "json",
			"--extra-capacity-min-rate", "50%"}, args...)...)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
		var got slackAnswer
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	file := filepath.Join(t.TempDir(), "slack.json")
	before, anew := ask("2", "--state", file).Placeholders, ask("2010m").Placeholders
	kept := ask("2010m", "--state", file).Placeholders
	for _, c := range []struct {
		what       string
		got        []slackShape
		milli, all int64
	}{{"before", before, 500, 2}, {"anew", anew, 503, 2}, {"kept", kept, 500, 3}} {
		if len(c.got) != 1 || c.got[0].CPUMilli != c.milli || c.got[0].Count != c.all {
			t.Errorf("%s: %+v, must be %d of %dm", c.what, c.got, c.all, c.milli)
		}
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ask("2010m", "--state", file)
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the state of the same question differs: %s\nand\n%s %v", first, again, err)
	}
}

func TestSlackRefusesWrongStates(t *testing.T) {
	for content, want := range map[string]string{
		`{}`: `must be loadline.dev/v1alpha1, SlackState`,
		`{apiVersion: loadline.dev/v1alpha1, kind: SlackState}`:                                 "state: missing",
		`{apiVersion: loadline.dev/v1alpha1, kind: SlackState, state: {nextId: 1, ids: 2}}`:     `unknown field "ids"`,
		`{apiVersion: loadline.dev/v1alpha1, kind: SlackState, state: {nextId: "-1"}}`:          "state.slack: next_id",
		`{apiVersion: loadline.dev/v1alpha1, kind: SlackState, state: {nextId: "1"}, other: 1}`: `unknown field "other"`,
	} {
		file := filepath.Join(t.TempDir(), "slack.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, errs, code := run(t, "loadline", "", "slack", "-f", "testdata/slack.yaml", "--state", file)
		if code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d: %s, which must name %q", content, code, errs, want)
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != content {
			t.Errorf("a state that is refused becomes %s", after)
		}
	}
}

// Under a line of 1.5 for memory a node of 32Gi takes limits of 48Gi. Half of what the pod requests is 4Gi in pieces:
// what "fits now" by the plan fits by the line as well, pod by pod as they are printed.
func TestSlackFitsUnderALoadLine(t *testing.T) {
	const line = "--max-limits-over-allocatable=memory=1.5"
	cluster := `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}}
- {apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: p}, spec: {nodeName: a, containers: [
  {name: c, resources: {requests: {cpu: "4", memory: 8Gi}, limits: {cpu: "4", memory: 8Gi}}}]}}
`
	out, errs, code := run(t, "loadline", cluster, "slack", "-f", "-", "--extra-capacity-min-rate", "50%", line,
		"-o", "deployments")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	pods := 0
	for _, document := range strings.Split(out, "---\n") {
		var deployment appsv1.Deployment
		if !strings.Contains(document, "kind: Deployment") {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(document), &deployment); err != nil {
			t.Fatal(err)
		}
		for range *deployment.Spec.Replicas {
			pods++
			deployment.Spec.Template.Spec.NodeName = "a"
			pod, err := json.Marshal(v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "loadline-slack", Name: fmt.Sprintf("s-%d", pods)},
				Spec:       deployment.Spec.Template.Spec})
			if err != nil {
				t.Fatal(err)
			}
			waits := strings.Replace(string(pod), `"nodeName":"a",`, "", 1)
			if out, errs, code := run(t, "loadline", cluster+"- "+waits+"\n", "why-not",
				fmt.Sprintf("loadline-slack/s-%d", pods), "a", "-f", "-", line); code != 0 ||
				strings.Contains(out, "load line") {
				t.Errorf("placeholder %d: exit %d: %s%s", pods, code, out, errs)
			}
			cluster += "- " + string(pod) + "\n"
		}
	}
	if pods < 2 {
		t.Errorf("%d placeholders: too few to tell", pods)
	}
}

// The page names classes as the table does.
func TestThePageOfSlackNamesMemoryAsPeopleDo(t *testing.T) {
	page, errs, code := run(t, "loadline", "", "slack", "-f", "testdata/slack.yaml", "-o", "html",
		"--extra-capacity-min-rate", "10%")
	if code != 0 || !strings.Contains(page, "cpu 2000m,memory 7.75Gi<") || strings.Contains(page, "memory 83") {
		t.Errorf("exit %d: %s%s", code, page, errs)
	}
}

// Reasons name a class as the table does, and amounts that people have written stay.
func TestReasonsOfSlackNameMemoryAsPeopleDo(t *testing.T) {
	for text, want := range map[string]string{
		"cpu 8000m,memory 34359738368":                          "cpu 8000m,memory 32Gi",
		"nodes of cpu 8000m,memory 34359738368 have less":       "nodes of cpu 8000m,memory 32Gi have less",
		"has cpu 2000m, memory 8321499136, less than the pod":   "has cpu 2000m, memory 7.75Gi, less than the pod",
		"memory 1073741824 and memory 7.75Gi, memory 8Gi, mine": "memory 1Gi and memory 7.75Gi, memory 8Gi, mine",
	} {
		if got := classText(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// In each cluster that users have met `slack` says of slack what `plan` says.
func TestSlackSaysWhatPlanSays(t *testing.T) {
	files, err := filepath.Glob("../../test/field/*/input.*")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, file := range files {
		args := []string{"-f", file, "--now", "2026-11-20T12:00:00Z", "-o", "json"}
		planned, _, code := run(t, "loadline", "", append([]string{"plan"}, args...)...)
		kept, errs, kind := run(t, "loadline", "", append([]string{"slack"}, args...)...)
		if code != kind {
			t.Errorf("%s: plan ends with %d, slack with %d: %s", file, code, kind, errs)
		}
		if code != 0 {
			continue
		}
		var loop planAnswer
		var slack slackAnswer
		if err := errors.Join(json.Unmarshal([]byte(planned), &loop), json.Unmarshal([]byte(kept), &slack)); err != nil {
			t.Fatal(err)
		}
		slack.Remarks, slack.OtherNodes = loop.Slack.Remarks, loop.Slack.OtherNodes // `plan` tells them beside slack
		if diff := cmp.Diff(loop.Slack, slack); diff != "" {
			t.Errorf("%s (-plan +slack):\n%s", file, diff)
		}
		compared++
	}
	if compared < 90 {
		t.Errorf("only %d clusters of %d are compared", compared, len(files))
	}
}

func TestSlackOfNoNodes(t *testing.T) {
	_, errs, code := run(t, "loadline", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "slack", "-f", "-")
	if code != 1 || !strings.Contains(errs, "the cluster has no nodes, and no node groups are named") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// The priorities that the autoscaler would follow are in the API server; a command that grows groups says so.
func TestSlackReadsNoPriorities(t *testing.T) {
	for _, command := range []string{"plan", "slack"} {
		_, errs, code := run(t, "loadline", "", command, "-f", "testdata/slack.yaml", "--strategies", "priority")
		if code != 0 || !strings.Contains(errs, "cluster-autoscaler-priority-expander") {
			t.Errorf("%s: exit %d: %s", command, code, errs)
		}
	}
}
