package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// useCluster has two nodes of 4 cores and 8 Gi with two pods of "web" on a and one of "mail" on b, each of which may
// use 2 cores and 4 Gi, and profiles: web uses 500m but 1500m at 14:00, and 1 Gi; nothing is known of mail.
func useCluster(t *testing.T) (cluster, profiles string) {
	t.Helper()
	var objects []string
	for _, name := range []string{"a", "b"} {
		objects = append(objects, fmt.Sprintf(`{"kind": "Node", "apiVersion": "v1", "metadata": {"name": %q},
			"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}`, name))
	}
	for i, of := range [][2]string{{"web", "a"}, {"web", "a"}, {"mail", "b"}} {
		objects = append(objects, fmt.Sprintf(`{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p%d",
			"namespace": "shop", "labels": {"pod-template-hash": "5d8f"}, "ownerReferences": [{"apiVersion": "apps/v1",
			"kind": "ReplicaSet", "name": "%s-5d8f", "uid": "u", "controller": true}]},
			"spec": {"nodeName": %q, "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"},
			"limits": {"cpu": "2", "memory": "4Gi"}}}]}, "status": {"phase": "Running"}}`, i, of[0], of[1]))
	}
	head := "namespace,kind,name,resource,samples,days,first,last"
	cpu, memory := "shop,Deployment,web,cpu_milli,9,7,2026-05-01T00:00:00Z,2026-05-07T23:00:00Z",
		"shop,Deployment,web,memory_bytes,9,7,2026-05-01T00:00:00Z,2026-05-07T23:00:00Z"
	for hour := range 24 {
		head += fmt.Sprintf(",h%02d", hour)
		use := 500
		if hour == 14 {
			use = 1500
		}
		cpu += fmt.Sprintf(",%d", use)
		memory += fmt.Sprintf(",%d", 1<<30)
	}
	write := func(name, text string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write("cluster.json", `{"kind": "List", "apiVersion": "v1", "items": [`+strings.Join(objects, ",")+`]}`),
		write("profiles.csv", head+"\n"+cpu+"\n"+memory+"\n")
}

// Limits of a are 4 of 4 cores, and the expected peak is 3 at 14:00: it would take 4/3 of its limits, 1.3 in steps of
// 0.05. On b limits are half of what it has, and count in full. Of memory a is expected to use 2 of 8 Gi, where limits
// are 8: four times as much would do, but b allows no more than 1.
func TestTopTellsExpectedUse(t *testing.T) {
	cluster, profiles := useCluster(t)
	out, errs, code := run(t, "loadline", "", "top", "-f", cluster, "--usage", profiles, "-o", "json")
	if code != 0 {
		t.Fatal(errs)
	}
	var got useAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, n := range got.Nodes {
		rows = append(rows, fmt.Sprintf("%s %s %d %d %d at %d, %d unknown", n.Node, n.Resource, n.Limits, n.Requests,
			n.ExpectedPeak, n.Hour, n.UnknownPods))
	}
	const gi = 1 << 30
	want := []string{"a cpu 4000 200 3000 at 14, 0 unknown", "b cpu 2000 100 2000 at 0, 1 unknown",
		fmt.Sprintf("b memory %d %d %d at 0, 1 unknown", 4*gi, gi, 4*gi),
		fmt.Sprintf("a memory %d %d %d at 0, 0 unknown", 8*gi, 2*gi, 2*gi)}
	if strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("got  %q\nwant %q", rows, want)
	}
	if len(got.Safe) != 2 || got.Safe[0] != (safeLine{"cpu", "1", "b"}) || got.Safe[1] != (safeLine{"memory", "1", "b"}) {
		t.Errorf("safe lines %+v", got.Safe)
	}
	// At a line of 1.5 b is over, and so is a, which allows 4/3. Limits of 6 cores take 6 / (4 * 1.5) nodes.
	if last := got.Lines[3]; last != (useLine{Resource: "cpu", Line: "1.5", NodesOver: 2, Nodes: 1}) {
		t.Errorf("the loosest line of CPU: %+v", last)
	}
	if hours := got.Nodes[0].ExpectedHours; len(hours) != 24 || hours[13] != 1000 || hours[14] != 3000 {
		t.Errorf("hours of a: %v", hours)
	}
	// Two nodes with two resources each; 3 of 4 cores at 14:00.
	page, _, _ := run(t, "loadline", "", "top", "-f", cluster, "--usage", profiles, "-o", "html")
	for _, says := range []string{"a: cpu, cores", "b: memory, GiB", "hour of the day, UTC", "expected use"} {
		if !strings.Contains(page, says) || strings.Count(page, "<figure>") != 4 {
			t.Errorf("%q is not in the page, or it has not four pictures", says)
		}
	}
	out, _, _ = run(t, "loadline", "", "top", "-f", cluster, "--usage", profiles)
	for _, says := range []string{"3.0 cpu = 0.75", "14:00",
		"cpu: with limits up to 1 times allocatable no node is expected to need more than it has; b allows no more."} {
		if !strings.Contains(out, says) {
			t.Errorf("%q is not in\n%s", says, out)
		}
	}
	if strings.Contains(out, "No pod on these nodes counts by a profile") {
		t.Errorf("pods count by profiles in\n%s", out)
	}
}

// The flags of `top` hold for expected use as well, or are refused.
func TestFlagsOfTopWithUse(t *testing.T) {
	cluster, profiles := useCluster(t)
	nodes := func(flags ...string) (rows []string) {
		out, errs, code := run(t, "loadline", "", append([]string{"top", "-f", cluster, "--usage", profiles, "-o", "json"},
			flags...)...)
		var got useAnswer
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
			t.Fatal(err, errs)
		}
		for _, n := range got.Nodes {
			rows = append(rows, n.Node+" "+n.Resource)
		}
		return rows
	}
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--resources", "memory"}, "b memory, a memory"},
		{[]string{"--sort-by", "name"}, "a cpu, a memory, b cpu, b memory"},
		{[]string{"--sort-by", "memory"}, "b memory, a memory, a cpu, b cpu"},
	} {
		if got := strings.Join(nodes(c.flags...), ", "); got != c.want {
			t.Errorf("%v: %s, want %s", c.flags, got, c.want)
		}
	}
	for flags, says := range map[string]string{"--lines=1,2": "--lines: not with --usage",
		"--resources=pods": "profiles tell of cpu and memory", "--sort-by=pods": "with --usage load, name, cpu or memory"} {
		if _, errs, code := run(t, "loadline", "", "top", "-f", cluster, "--usage", profiles, flags); code != 2 ||
			!strings.Contains(errs, says) {
			t.Errorf("%s: code %d, %s", flags, code, errs)
		}
	}
	others := filepath.Join(t.TempDir(), "others.csv")
	data, err := os.ReadFile(profiles)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(others, []byte(strings.ReplaceAll(string(data), "web", "other")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, _ := run(t, "loadline", "", "top", "-f", cluster, "--usage", others)
	if !strings.Contains(out, "No pod on these nodes counts by a profile") {
		t.Errorf("nobody says that the profiles are of others:\n%s", out)
	}
}

// The answer about 15,000 nodes fits: it states the hours of the busiest nodes only. Node 7 alone has two pods.
func TestTopTellsExpectedUseOf15000Nodes(t *testing.T) {
	const nodes = 15000
	_, profiles := useCluster(t)
	var objects strings.Builder
	pod := func(name, node int) {
		fmt.Fprintf(&objects, `,{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p%d", "namespace": "shop",
			"labels": {"pod-template-hash": "5d8f"}, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet",
			"name": "web-5d8f", "uid": "u", "controller": true}]}, "spec": {"nodeName": "ip-10-0-%d.compute.internal",
			"containers": [{"name": "c", "resources": {"limits": {"cpu": "2", "memory": "4Gi"}}}]}}`, name, node)
	}
	for i := range nodes {
		fmt.Fprintf(&objects, `,{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "ip-10-0-%d.compute.internal"},
			"status": {"allocatable": {"cpu": "15890m", "memory": "63123456Ki", "pods": "110"}}}`, i)
		pod(i, i)
	}
	pod(nodes, 7)
	list := `{"kind": "List", "apiVersion": "v1", "items": [` + objects.String()[1:] + `]}`
	out, errs, code := run(t, "loadline", list, "top", "-f", "-", "--usage", profiles, "-o", "json")
	if code != 0 {
		t.Fatal(errs)
	}
	var got useAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	hours := map[string]int{}
	for _, n := range got.Nodes {
		if len(n.ExpectedHours) == 24 {
			hours[n.Resource]++
		}
	}
	if len(got.Nodes) != 2*nodes || hours["cpu"] != 24 || hours["memory"] != 24 {
		t.Errorf("%d rows, hours of %v", len(got.Nodes), hours)
	}
	if busiest := got.Nodes[0]; busiest.Node != "ip-10-0-7.compute.internal" || len(busiest.ExpectedHours) != 24 {
		t.Errorf("the busiest node: %+v", busiest)
	}
}

// Both resources of p0 count by the profile of its workload, and the node is worst at 14:00.
func TestWhyShowsTheHour(t *testing.T) {
	cluster, profiles := useCluster(t)
	out, errs, code := run(t, "loadline", "", "why", "shop/p0", "-f", cluster, "--usage", profiles)
	if code != 0 {
		t.Fatal(errs)
	}
	for _, says := range []string{"HOUR", "14:00", "its profile", "EXPECTED THERE"} {
		if !strings.Contains(out, says) {
			t.Errorf("%q is not in\n%s", says, out)
		}
	}
	if out, _, _ = run(t, "loadline", "", "why", "shop/p0", "-f", cluster); strings.Contains(out, "HOUR") {
		t.Errorf("hours without profiles:\n%s", out)
	}
}

func TestUsageFlagsAreChecked(t *testing.T) {
	cluster, profiles := useCluster(t)
	for _, args := range [][]string{{"--usage", profiles, "--usage-namespace", "n"}, {"--usage-namespace", "n"},
		{"--usage", profiles + ".absent"}, {"--usage", cluster}} {
		if _, errs, code := run(t, "loadline", "", append([]string{"top", "-f", cluster}, args...)...); code == 0 {
			t.Errorf("%v is taken: %s", args, errs)
		}
	}
}
