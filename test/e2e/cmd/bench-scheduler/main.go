// Command bench-scheduler runs scheduler_perf over and over, the cases taking turns, and prints medians.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
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
	nodes := flag.String("nodes", "500,5000", "sizes of the cluster")
	pods := flag.Int("pods", 5000, "pods that are measured in each run")
	only := flag.String("cases", "", "cases to run, by comma; empty: all")
	kept := flag.String("results", "", "a file to which each run is added; the report counts all runs in it, so that "+
		"a measurement can be made in pieces")
	profiles := flag.String("profiles", "", "a folder for a CPU profile of each case and size, in pprof's format; of the "+
		"scheduler and the API server, which are one process here")
	flag.Parse()
	earlier, err := readResults(*kept)
	if err != nil {
		return err
	}
	sizes, err := parseSizes(*nodes)
	if err != nil {
		return err
	}

	root, err := harness.Root()
	if err != nil {
		return err
	}
	progress := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	etcd, err := harness.Build(ctx, progress, harness.Etcd)
	if err != nil {
		return err
	}
	program := filepath.Join(etcd, "perf.test")
	progress("building scheduler_perf (minutes the first time)")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "./perf")
	build.Dir, build.Stderr = filepath.Join(root, "test", "e2e"), os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go test -c ./perf: %w", err)
	}

	results, err := runAll(ctx, *repeats, sizes, chosen(*only), func(c perf.Case, nodes int) (perf.Result, error) {
		more, err := profileArgs(*profiles, c, nodes)
		if err != nil {
			return perf.Result{}, err
		}
		result, err := runCase(ctx, root, etcd, program, c, nodes, *pods, more...)
		if err == nil && result.Check() == nil {
			err = addResult(*kept, result)
		}
		return result, err
	}, progress)
	return errors.Join(perf.Report(os.Stdout, append(earlier, results...)), err)
}

// profileArgs are the arguments of a run whose profile is kept in a folder; the next run of the same case replaces it.
func profileArgs(folder string, c perf.Case, nodes int) ([]string, error) {
	if folder == "" {
		return nil, nil
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	name := strings.ReplaceAll(fmt.Sprintf("%s-%d.pprof", c, nodes), " ", "-")
	return []string{"-test.cpuprofile=" + filepath.Join(folder, name)}, os.MkdirAll(folder, 0o755)
}

// readResults reads the results that earlier pieces of a measurement left, one a line; there may be none.
func readResults(path string) (results []perf.Result, err error) {
	file, err := os.Open(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	for decoder.More() {
		var result perf.Result
		if err := decoder.Decode(&result); err != nil {
			return nil, fmt.Errorf("--results %s: %w", path, err)
		}
		results = append(results, result)
	}
	return results, nil
}

func addResult(path string, result perf.Result) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(file).Encode(result), file.Close())
}

// runAll runs each case at each size, all of them once before any of them twice: what else the machine does then
// falls on all alike. It returns the results that count, also when it was interrupted, and why others do not.
func runAll(ctx context.Context, repeats int, sizes []int, cases []perf.Case,
	run func(perf.Case, int) (perf.Result, error), progress func(string, ...any)) (results []perf.Result, err error) {
	for repeat := range repeats {
		for _, nodes := range sizes {
			for _, c := range cases {
				began := time.Now()
				result, failed := run(c, nodes)
				if ctx.Err() != nil {
					return results, errors.Join(err, ctx.Err())
				}
				if failed == nil {
					failed = result.Check()
				}
				if failed != nil {
					progress("run %d of %d: %v", repeat+1, repeats, failed)
					err = errors.Join(err, failed)
					continue
				}
				progress("run %d of %d: %5d nodes  %-17s  %6.0f pods/s  (%.0f s)", repeat+1, repeats, nodes, c,
					result.PodsPerSecond, time.Since(began).Seconds())
				results = append(results, result)
			}
		}
	}
	return results, err
}

func chosen(only string) []perf.Case {
	cases := perf.CasesOf(harness.Minor())
	if only == "" {
		return cases
	}
	return slices.DeleteFunc(slices.Clone(cases), func(c perf.Case) bool {
		return !slices.Contains(strings.Split(only, ","), string(c))
	})
}

func parseSizes(text string) ([]int, error) {
	var sizes []int
	for _, word := range strings.Split(text, ",") {
		nodes, err := strconv.Atoi(word)
		if err != nil || nodes < 1 {
			return nil, fmt.Errorf("--nodes %q: %q is not a number of nodes", text, word)
		}
		sizes = append(sizes, nodes)
	}
	return sizes, nil
}

// runCase runs one case once, in a process and a folder of its own.
func runCase(ctx context.Context, root, etcd, program string, c perf.Case, nodes, pods int,
	more ...string) (perf.Result, error) {
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
	command := exec.CommandContext(ctx, program, "-test.run=^$", "-test.bench=^BenchmarkPerfScheduling$",
		"-test.benchtime=1x",
		"-perf-scheduling-label-filter=", "-data-items-dir="+dir, "-perf-dir="+dir, "-perf-case="+string(c),
		"-perf-nodes="+strconv.Itoa(nodes), "-perf-pods="+strconv.Itoa(pods),
		"-perf-bin="+filepath.Join(root, "build", "bin"))
	command.Args = append(command.Args, more...)
	command.Dir = filepath.Join(root, "test", "e2e", "perf")
	command.Env = append(os.Environ(), "PATH="+etcd+":"+os.Getenv("PATH"),
		"LOADLINE_LIBRARY="+filepath.Join(root, "build", "lib", "libloadline.so"))
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Run(); err != nil {
		tail, _ := os.ReadFile(log.Name())
		return result, fmt.Errorf("%s, %d nodes: %w\n%s", c, nodes, err, tail[max(0, len(tail)-4000):])
	}
	bytes, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(bytes, &result); err != nil {
		return result, err
	}
	return result, nil
}
