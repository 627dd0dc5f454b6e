// Command bench-scheduler runs scheduler_perf over and over, the cases taking turns, and prints medians.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/perf"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench-scheduler:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	repeats := flag.Int("repeats", 5, "runs of each case and size")
	sizes := flag.String("nodes", "500,5000", "sizes of the cluster")
	pods := flag.Int("pods", 5000, "pods that are measured in each run")
	only := flag.String("cases", "", "cases to run, by comma; empty: all")
	flag.Parse()

	root, err := harness.Root()
	if err != nil {
		return err
	}
	progress := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	etcd, err := harness.Build(ctx, progress, harness.Etcd)
	if err != nil {
		return err
	}
	program := filepath.Join(root, "build", "e2e", "bin", "perf.test")
	progress("building scheduler_perf (minutes the first time)")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "./perf")
	build.Dir, build.Stderr = filepath.Join(root, "test", "e2e"), os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go test -c ./perf: %w", err)
	}

	var results []perf.Result
	for repeat := range *repeats {
		for _, size := range strings.Split(*sizes, ",") {
			nodes, err := strconv.Atoi(size)
			if err != nil {
				return fmt.Errorf("--nodes %q: %w", *sizes, err)
			}
			for _, c := range perf.Cases {
				if *only != "" && !strings.Contains(","+*only+",", ","+string(c)+",") {
					continue
				}
				began := time.Now()
				result, err := runCase(ctx, root, etcd, program, c, nodes, *pods)
				if err != nil {
					return fmt.Errorf("%s, %d nodes: %w", c, nodes, err)
				}
				progress("run %d of %d: %5d nodes  %-17s  %6.0f pods/s  (%.0f s)", repeat+1, *repeats, nodes, c,
					result.PodsPerSecond, time.Since(began).Seconds())
				if err := result.Check(); err != nil {
					return err
				}
				results = append(results, result)
			}
		}
	}
	return perf.Report(os.Stdout, results)
}

// runCase runs one case once, in a process and a folder of its own.
func runCase(ctx context.Context, root, etcd, program string, c perf.Case, nodes, pods int) (perf.Result, error) {
	var result perf.Result
	dir, err := os.MkdirTemp("/tmp", "ll-perf-") // short: a socket's path holds 107 characters
	if err != nil {
		return result, err
	}
	defer os.RemoveAll(dir)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return result, err
	}
	defer log.Close()
	command := exec.CommandContext(ctx, program, "-test.run=^$", "-test.bench=^BenchmarkPerfScheduling$", "-test.benchtime=1x",
		"-perf-scheduling-label-filter=", "-data-items-dir="+dir, "-perf-dir="+dir, "-perf-case="+string(c),
		"-perf-nodes="+strconv.Itoa(nodes), "-perf-pods="+strconv.Itoa(pods), "-perf-bin="+filepath.Join(root, "build", "bin"))
	command.Dir = filepath.Join(root, "test", "e2e", "perf")
	command.Env = append(os.Environ(), "PATH="+etcd+":"+os.Getenv("PATH"),
		"LOADLINE_LIBRARY="+filepath.Join(root, "build", "lib", "libloadline.so"))
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Run(); err != nil {
		tail, _ := os.ReadFile(log.Name())
		return result, fmt.Errorf("%w\n%s", err, tail[max(0, len(tail)-4000):])
	}
	bytes, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(bytes, &result); err != nil {
		return result, err
	}
	result.Nodes, result.Pods = nodes, pods
	return result, nil
}
