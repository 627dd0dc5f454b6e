package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// With --groups, the subject of `why` is a group if the file has one of that name, else a pod or a node.
func TestWhyBesideGroupsIsAboutWhatTheNameIsOf(t *testing.T) {
	cluster, groups := refusalFiles(t)
	manifest := t.TempDir() + "/pod.yaml"
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: new, namespace: shop}, spec: {containers: [{name: c}]}}`
	if err := os.WriteFile(manifest, []byte(pod), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(cluster)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		subject, cluster, want string
		code                   int
	}{
		{"fine", cluster, "fine: place 1 of 5", 0},
		{"n1", cluster, "n1 can go, it is empty; ", 0},
		{"node/n1", cluster, "n1 can go, it is empty; ", 0},
		{"shop/web", cluster, "shop/web fits on none of 1 node now: none is scored", 0},
		{"-p " + manifest, cluster, "shop/new: ", 0},
		{"none", cluster, "error: " + groups + " has no node group none, and pod default/none is not in " + cluster, 1},
		{"n1", "-", "n1 can go, it is empty; ", 0},
		{"node/n1", "-", "n1 can go, it is empty; ", 0},
	} {
		args := append(append([]string{"why"}, strings.Fields(c.subject)...), "-f", c.cluster, "--groups", groups)
		out, errs, code := run(t, "loadline", string(text), args...)
		if code != c.code || !strings.HasPrefix(out+errs, c.want) {
			t.Errorf("%s in %s: exit %d: %s%s, want %s", c.subject, c.cluster, code, out, errs, c.want)
		}
	}
}

// A file of groups may be a pipe, which gives its content once: `--groups <(make-groups)`.
func TestWhyReadsThePipeOfGroupsOnce(t *testing.T) {
	cluster, _ := refusalFiles(t)
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if _, err := to.WriteString(refusalGroups()); err != nil {
		t.Fatal(err)
	}
	to.Close()
	out, errs, code := run(t, "loadline", "", "why", "fine", "-f", cluster, "--groups",
		fmt.Sprintf("/dev/fd/%d", from.Fd()))
	if code != 0 || !strings.HasPrefix(out, "fine: place 1 of 5") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
