package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A pod that has a node is judged as one that waits: a group grows for it, or its filters say why not.
func TestWhyNotOfAPodThatHasANodeSaysWhatGroupsTake(t *testing.T) {
	cluster, groups := refusalFiles(t)
	text, err := os.ReadFile(cluster)
	if err != nil {
		t.Fatal(err)
	}
	pod := func(name, cpu string) string {
		return `- apiVersion: v1
  kind: Pod
  metadata: {name: ` + name + `, namespace: shop}
  spec: {nodeName: n1, containers: [{name: a, image: x, resources: {requests: {cpu: ` + cpu + `}}}]}
  status: {phase: Running, conditions: [{type: PodScheduled, status: 'True'}]}
`
	}
	exported := filepath.Join(t.TempDir(), "pod.yaml")
	manifest := strings.ReplaceAll(strings.TrimPrefix(pod("large", "900m"), "- "), "\n  ", "\n")
	if err := os.WriteFile(exported, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ there, args, want string }{
		{pod("large", "900m"), "shop/large fine", "fine could grow for shop/large\n"},
		{pod("large", "900m"), "shop/large spot",
			"spot does not grow for shop/large: node(s) had untolerated taint(s): spot:NoSchedule\n"},
		{pod("little", "100m"), "shop/little fine", "shop/little finds room on n1, so no group grows for it\n"},
		{"", "-p " + exported + " fine", "fine could grow for shop/large\n"},
	} {
		if err := os.WriteFile(cluster, append(slices.Clip(text), c.there...), 0o600); err != nil {
			t.Fatal(err)
		}
		args, want := c.args, c.want
		all := append([]string{"why-not"}, strings.Fields(args)...)
		out, errs, code := run(t, "loadline", "", append(all, "-f", cluster, "--groups", groups)...)
		if code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("%s: exit %d %s: %s, want %s", args, code, errs, out, want)
		}
	}
}

// Remarks are for each command that shows such a pod, or plans around it.
func TestScoreAndSlackSayWhatIsSpecialAboutPods(t *testing.T) {
	cluster, _ := refusalFiles(t)
	const gated = "Pod shop/gated is gated and waits for no node: example.com/quota has to be taken off first."
	for _, c := range []struct {
		args []string
		want []string
	}{{[]string{"score", "shop/gated"}, []string{gated}},
		{[]string{"score", "shop/huge"}, []string{"Pod shop/huge is of a gang (train)"}},
		{[]string{"slack"}, []string{gated, "Pod shop/huge is of a gang (train)"}}} {
		for _, form := range []string{"table", "json", "html"} {
			out, errs, code := run(t, "loadline", "", append(c.args, "-f", cluster, "-o", form)...)
			for _, want := range c.want {
				if code != 0 || !strings.Contains(out, want) {
					t.Errorf("%v -o %s: exit %d %s, want %q in\n%s", c.args, form, code, errs, want, out)
				}
			}
		}
	}
}

// A manifest of a DaemonSet is a pod of it, for which no group grows.
func TestWhyNotOfADaemonSetInAManifest(t *testing.T) {
	cluster, groups := refusalFiles(t)
	file := filepath.Join(t.TempDir(), "ds.yaml")
	const set = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: dd, namespace: shop},
  spec: {template: {spec: {containers: [{name: c, resources: {requests: {cpu: 900m}}}]}}}}`
	if err := os.WriteFile(file, []byte(set), 0o600); err != nil {
		t.Fatal(err)
	}
	for group, want := range map[string]string{
		"fine": "fine does not grow for shop/dd: it is of DaemonSet dd and belongs to one node: no new one helps\n",
		"":     "shop/dd: no node group grows for it: it is of DaemonSet dd and belongs to one node: no new one helps\n",
	} {
		args := append(strings.Fields("why-not -p "+file+" "+group), "-f", cluster, "--groups", groups)
		if out, errs, code := run(t, "loadline", "", args...); code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("%s: exit %d %s: %s, want %s", group, code, errs, out, want)
		}
	}
}

// The engine, and not the reader of the file, refuses the pod.
func TestWhyNotOfAPodThatTheEngineCannotReadIsAnError(t *testing.T) {
	cluster, groups := refusalFiles(t)
	text, err := os.ReadFile(cluster)
	if err != nil {
		t.Fatal(err)
	}
	const negative = `- {apiVersion: v1, kind: Pod, metadata: {name: negative, namespace: shop},
   spec: {containers: [{name: a, resources: {requests: {cpu: "-1"}}}]}}
`
	if err := os.WriteFile(cluster, append(text, negative...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"", "fine"} {
		args := append(strings.Fields("why-not shop/negative "+group), "-f", cluster, "--groups", groups)
		_, errs, code := run(t, "loadline", "", args...)
		if code != 1 || !strings.Contains(errs, "pod shop/negative cannot be read: ") ||
			!strings.Contains(errs, `"-1" is negative`) {
			t.Errorf("%s: exit %d %s", group, code, errs)
		}
	}
}

// A pod that is there and cannot be read is not said to be missing.
func TestAPodThatCannotBeReadIsAnErrorThatSaysWhy(t *testing.T) {
	cluster, groups := refusalFiles(t)
	text, err := os.ReadFile(cluster)
	if err != nil {
		t.Fatal(err)
	}
	const broken = `- {apiVersion: v1, kind: Pod, metadata: {name: broken, namespace: shop},
   spec: {NODE containers: [{name: a, resources: {requests: {cpu: 1x}}}]}}
`
	for _, node := range []string{"", "nodeName: n1,"} {
		more := strings.Replace(broken, "NODE", node, 1)
		if err := os.WriteFile(cluster, append(slices.Clip(text), more...), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"why", "score", "fit", "why-not", "why-not --groups " + groups} {
			args := append(strings.Fields(command), "shop/broken", "-f", cluster)
			_, errs, code := run(t, "loadline", "", args...)
			if code != 1 || !strings.Contains(errs, `pod shop/broken cannot be read: item 7 (Pod "shop/broken"): `+
				"spec.containers[0].resources.requests.cpu: quantities must") {
				t.Errorf("%s of a pod with %q: exit %d %s", command, node, code, errs)
			}
		}
	}
}
