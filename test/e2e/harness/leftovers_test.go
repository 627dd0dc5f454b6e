package harness_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"loadline.dev/test/e2e/harness"
)

// The scenarios run in a process of their own: this test binary, started again with the name of the scenario in
// this variable. They print the cluster's folder once its components run.
const scenarioVariable = "LOADLINE_E2E_SCENARIO"

const (
	endsWell      = "ends well"
	endsWithError = "a component does not start"
	panics        = "panics in another goroutine"
	waits         = "waits to be killed"
)

func playScenario(scenario string) {
	ctx := context.Background()
	cluster, err := harness.Start(ctx, harness.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	config := stockConfig
	if scenario == endsWithError {
		config += "profilez: []\n"
	}
	fmt.Println(cluster.Dir())
	if _, err := cluster.StartScheduler(ctx,
		harness.SchedulerOptions{Name: "stock", Config: []byte(config), Site: site}); err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(err, cluster.Close()))
		os.Exit(1)
	}
	fmt.Println("started")
	switch scenario {
	case panics:
		go panic("as the scenario says")
		select {}
	case waits:
		select {}
	}
	if err := cluster.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// However a program ends that uses the harness, soon after there is neither a process nor a folder of it.
func TestLeavesNothingBehind(t *testing.T) {
	if _, err := harness.Build(t.Context(), t.Logf, harness.Etcd, harness.APIServer,
		harness.StockScheduler); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, scenario string
		signal         syscall.Signal // sent once the components run; 0: none
		stopped        bool           // the scheduler is stopped (SIGSTOP) before that
		exit           int            // -1: ended by a signal
	}{
		{"Success", endsWell, 0, false, 0},
		{"Error", endsWithError, 0, false, 1},
		{"Panic", panics, 0, false, 2},
		{"SIGINT", waits, syscall.SIGINT, false, 128 + 2},
		{"SIGTERMWithAStoppedComponent", waits, syscall.SIGTERM, true, 128 + 15},
		{"SIGKILL", waits, syscall.SIGKILL, false, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, c.scenario)
			if c.stopped {
				for _, pid := range processesOf(t, p.dir, "stock.yaml") {
					if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
						t.Fatal(err)
					}
				}
			}
			if c.signal != 0 {
				if running := len(processesOf(t, p.dir, "")); running < 4 {
					t.Fatalf("%d processes mention %s, want etcd, kube-apiserver, kube-scheduler and the watchman",
						running, p.dir)
				}
				if err := p.cmd.Process.Signal(c.signal); err != nil {
					t.Fatal(err)
				}
			}
			_ = p.cmd.Wait() // the exit code says it all
			if code := p.cmd.ProcessState.ExitCode(); code != c.exit {
				t.Errorf("exit code %d, want %d; it said:\n%s", code, c.exit, p.stderr)
			}
			checkGone(t, p.dir)
		})
	}
}

type scenarioProcess struct {
	cmd    *exec.Cmd
	dir    string
	stderr *bytes.Buffer
}

// play starts a scenario and waits until its components run, or, where they will not, until it has a folder.
func play(t *testing.T, scenario string) scenarioProcess {
	t.Helper()
	p := scenarioProcess{cmd: exec.Command(os.Args[0]), stderr: &bytes.Buffer{}}
	p.cmd.Env = append(os.Environ(), scenarioVariable+"="+scenario)
	p.cmd.Stderr = p.stderr
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	if lines.Scan() {
		p.dir = lines.Text()
	}
	if scenario != endsWithError && (!lines.Scan() || lines.Text() != "started") {
		_ = p.cmd.Wait()
		t.Fatalf("the scenario did not start:\n%s", p.stderr)
	}
	if _, err := os.Stat(p.dir); err != nil && scenario == waits {
		t.Fatalf("the scenario's folder: %v", err)
	}
	return p
}

// checkGone waits for the kernel and the watchman, who need a moment where we were not asked.
func checkGone(t *testing.T, dir string) {
	t.Helper()
	var running []int
	var statError error
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		running = processesOf(t, dir, "")
		_, statError = os.Stat(dir)
		if len(running) == 0 && errors.Is(statError, os.ErrNotExist) {
			return
		}
	}
	t.Errorf("left behind: processes %v; folder %s: %v", running, dir, statError)
}

// processesOf returns the processes whose command line mentions the folder and the text.
func processesOf(t *testing.T, dir, text string) []int {
	t.Helper()
	if !strings.Contains(filepath.Base(dir), "ll-") {
		t.Fatalf("%q is no folder of a cluster", dir)
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(line, []byte(dir)) || !bytes.Contains(line, []byte(text)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}
