package e2e

import (
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/harness"
)

const (
	sweepShards   = 200
	rowsInShard   = 3
	sweepScenario = `apiVersion: loadline.dev/v1alpha1
kind: Scenario
metadata: {name: small}
spec:
  groups: [{name: g, max: 6, milliCpu: 4000, memoryMib: 16384, usdPerHour: 0.2}]
  workloads: [{name: w, replicas: 12, milliCpu: 900, memoryMib: 1024, limitMilliCpu: 2000, dailyPercent: 60}]
`
	sweepFile = `apiVersion: loadline.dev/v1alpha1
kind: Sweep
metadata: {name: small}
spec:
  inputs: [{scenario: scenario.yaml}]
  days: 1
  seeds: {count: 12}
  settings: [{path: settings.slackPercent, range: {from: 1, to: 49, steps: 49}}]
  goal: {p95WaitSeconds: 60}
`
)

// 200 shards of a sweep run by the Job controller: 20 are killed in the middle, half of them by evictions, and 5 fail
// for good; whoever collects is killed and started again. All rows of the other 195 are there once, as those of a local
// run.
func TestSweepOnACluster(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	dir := t.TempDir()
	for name, content := range map[string]string{"scenario.yaml": sweepScenario, "sweep.yaml": sweepFile} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	local := sweepRows(t, sweepCommand(t, ctx, dir, "here", "--workers", "2"), true)
	if len(local) != sweepShards*rowsInShard {
		t.Fatalf("%d rows, want %d", len(local), sweepShards*rowsInShard)
	}

	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf, ControllerManager: true})
	objects, err := harness.ManifestObjects("sweep")
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Apply(ctx, objects); err != nil {
		t.Fatal(err)
	}
	defer runSweepPods(t, ctx, cluster)()

	args := []string{"--on-cluster", "-n", "loadline-sweeps", "--kubeconfig", collectorRights(t, ctx, cluster),
		"--image", "registry.example/loadline:v0", "--shards", strconv.Itoa(sweepShards), "--parallelism", "20",
		"--retries", "1", "--poll", "200ms"}
	killCollector(t, sweepCommand(t, ctx, dir, "there", args...), filepath.Join(dir, "there", "rows.jsonl"))
	collected := sweepRows(t, sweepCommand(t, ctx, dir, "there", args...), false)

	compareRows(t, local, collected)
	checkJob(t, ctx, cluster)
}

// compareRows sees that those of a cluster are the local ones, but for those of shards that failed.
func compareRows(t *testing.T, local, collected map[string]string) {
	t.Helper()
	lost := map[string]bool{}
	for _, index := range failing {
		for row := index * rowsInShard; row < (index+1)*rowsInShard; row++ {
			lost[strconv.Itoa(row)] = true
		}
	}
	for row, line := range local {
		switch got, there := collected[row]; {
		case lost[row] && there:
			t.Errorf("row %s is there, and its shard failed", row)
		case !lost[row] && got != line:
			t.Errorf("row %s is\n%s\nand that of a local run\n%s", row, got, line)
		}
	}
	if want := len(local) - len(lost); len(collected) != want {
		t.Errorf("%d rows, want %d", len(collected), want)
	}
}

// runSweepPods runs pods as processes with the rights of the account of shards, until `stop` is called.
func runSweepPods(t *testing.T, ctx context.Context, cluster *harness.Cluster) (stop func()) {
	t.Helper()
	rights, err := cluster.ServiceAccountKubeconfig(ctx, "loadline-sweeps", "loadline-sweep")
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs(filepath.Join("..", "..", "build", "bin", "loadline"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	pods := &harness.JobPods{Namespace: "loadline-sweeps", Program: program, Kubeconfig: rights, AtOnce: 6, Fate: sweepFate}
	if err := pods.Start(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	return func() {
		cancel()
		pods.Wait()
	}
}

// failing are the indexes that fail for good; of the first twenty, the even ones are killed and the others evicted.
var failing = []int{31, 77, 118, 150, 199}

func sweepFate(index string, attempt int) harness.PodFate {
	number, _ := strconv.Atoi(index)
	switch {
	case slices.Contains(failing, number):
		return harness.Fails
	case number < 20 && attempt == 1 && number%2 == 0:
		return harness.Killed
	case number < 20 && attempt == 1:
		return harness.Evicted
	}
	return harness.Runs
}

// collectorRights is a kubeconfig with the rights of the role for those who collect, and no others.
func collectorRights(t *testing.T, ctx context.Context, cluster *harness.Cluster) string {
	t.Helper()
	content := `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: collector, namespace: loadline-sweeps}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: loadline-sweep-collector}
subjects: [{kind: User, name: collector, apiGroup: rbac.authorization.k8s.io}]
`
	objects, err := harness.Objects([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Apply(ctx, objects); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := cluster.UserKubeconfig("collector")
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

func sweepCommand(t *testing.T, ctx context.Context, dir, results string, args ...string) *exec.Cmd {
	t.Helper()
	program, err := filepath.Abs(filepath.Join("..", "..", "build", "bin", "loadline"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"sweep", "sweep.yaml", "--results", results, "-o", "csv"},
		args...)...)
	cmd.Dir = dir
	return cmd
}

// sweepRows runs a sweep and returns its lines by row. One whose shards fail says so, and writes the others.
func sweepRows(t *testing.T, cmd *exec.Cmd, succeeds bool) map[string]string {
	t.Helper()
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if (err == nil) != succeeds {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, errs.String())
	}
	if !succeeds && !strings.Contains(errs.String(), "shards 31,77,118,150,199 failed for good") {
		t.Errorf("the shards that failed are not told: %s", errs.String())
	}
	t.Log(errs.String())
	records, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, record := range records[1:] {
		if _, twice := rows[record[0]]; twice {
			t.Errorf("row %s occurs twice", record[0])
		}
		rows[record[0]] = strings.Join(record, ",")
	}
	return rows
}

// killCollector lets a collector take some rows and kills it.
func killCollector(t *testing.T, cmd *exec.Cmd, journal string) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		content, _ := os.ReadFile(journal)
		if strings.Count(string(content), "\n") > 60 {
			break
		}
		if time.Since(begun) > 10*time.Minute {
			t.Error("no rows come")
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// checkJob sees that the Job controller, and nobody else, has run shards again.
func checkJob(t *testing.T, ctx context.Context, cluster *harness.Cluster) {
	t.Helper()
	jobs, err := cluster.Client.BatchV1().Jobs("loadline-sweeps").List(ctx, metav1.ListOptions{})
	if err != nil || len(jobs.Items) != 1 {
		t.Fatalf("there are %v jobs: %v", jobs, err)
	}
	job := jobs.Items[0]
	if job.Status.Succeeded != sweepShards-int32(len(failing)) {
		t.Errorf("%d shards succeeded", job.Status.Succeeded)
	}
	results, err := cluster.Client.CoreV1().ConfigMaps("loadline-sweeps").List(ctx,
		metav1.ListOptions{LabelSelector: "loadline.dev/sweep-job=" + job.Name})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, object := range results.Items {
		names[object.Name] = true
	}
	if want := sweepShards - len(failing) + 1; len(names) != want {
		t.Errorf("%d ConfigMaps, want %d: %v", len(names), want, slices.Sorted(maps.Keys(names)))
	}
	for _, index := range failing {
		if names[fmt.Sprintf("%s-%d", job.Name, index)] {
			t.Errorf("shard %d left rows", index)
		}
	}
}
