package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// A control plane is up in 3 s and down in 1 s. The time beyond that is for machines busy with other work.
	readyTimeout   = 3 * time.Minute
	attemptTimeout = 10 * time.Second
	stopTimeout    = 30 * time.Second // then SIGKILL

	pollInterval = 20 * time.Millisecond
	tailLines    = 25
)

// Logf takes the harness's progress reports. nil drops them.
type Logf func(format string, args ...any)

func (log Logf) printf(format string, args ...any) {
	if log != nil {
		log(format, args...)
	}
}

// A Process is one running component: a child in a process group of its own, so that a Ctrl-C at the terminal
// reaches only us and the components stop in the right order; the kernel kills it when we die without stopping it.
type Process struct {
	Name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when the process has ended
	err  error         // how it ended; read after done

	killed atomic.Bool // by Kill
}

type processSpec struct {
	name string
	path string
	args []string
	env  []string
	dir  string
	log  string
	// ready returns nil once the component serves. nil: ready at once.
	ready func(context.Context) error
}

// forker runs functions one after another on one thread that lives as long as the program. The kernel's
// "kill the child when the parent dies" means the thread that forked it, and Go ends threads when it likes.
var forker = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// fork starts a command on the thread of forker.
func fork(cmd *exec.Cmd) error {
	started := make(chan error)
	forker() <- func() { started <- cmd.Start() }
	return <-started
}

func startProcess(spec processSpec) (*Process, error) {
	logFile, err := os.OpenFile(spec.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer logFile.Close() // the child holds its own copy
	cmd := exec.Command(spec.path, spec.args...)
	cmd.Env, cmd.Dir = spec.env, spec.dir
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := fork(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.name, err)
	}
	p := &Process{Name: spec.name, cmd: cmd, log: spec.log, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// waitReady waits until ready returns nil. It fails at once when the process ends.
func (p *Process) waitReady(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var last error // of an attempt that was not cut off by the end
	for {
		attempt, done := context.WithTimeout(ctx, attemptTimeout)
		err := ready(attempt)
		done()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready: %s%s", p.Name, p.Exit(), p.tailSection())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w (%v)%s", p.Name, last, context.Cause(ctx), p.tailSection())
		case <-time.After(pollInterval):
		}
	}
}

// Running reports whether the process has not ended yet. A stopped (SIGSTOP) process runs in this sense.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal to the process.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Wait waits until the process ends.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s is still running: %w", p.Name, ctx.Err())
	}
}

// ExitCode returns the exit code of a process that has ended, or -1 if a signal ended it or it still runs.
func (p *Process) ExitCode() int {
	if p.Running() {
		return -1
	}
	return p.cmd.ProcessState.ExitCode()
}

// Exit says in words how the process ended.
func (p *Process) Exit() string {
	switch {
	case p.Running():
		return "still running"
	case p.cmd.ProcessState != nil:
		return p.cmd.ProcessState.String()
	default:
		return fmt.Sprint(p.err)
	}
}

// Stop asks the process to end with SIGTERM and kills it when it does not. It returns an error when it had to
// be killed, or had ended before by itself with a failure.
func (p *Process) Stop() error {
	if !p.Running() {
		if p.err != nil && !p.killed.Load() {
			return fmt.Errorf("%s had ended by itself: %s%s", p.Name, p.Exit(), p.tailSection())
		}
		return nil
	}
	// A stopped process sees SIGTERM only after SIGCONT. Errors mean that it ended in between.
	_ = p.Signal(syscall.SIGTERM)
	_ = p.Signal(syscall.SIGCONT)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
	}
	p.Kill()
	return fmt.Errorf("%s did not end within %v of SIGTERM and was killed%s", p.Name, stopTimeout, p.tailSection())
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *Process) Kill() {
	p.killed.Store(true)
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Log returns what the process has printed so far.
func (p *Process) Log() (string, error) {
	content, err := os.ReadFile(p.log)
	return string(content), err
}

func (p *Process) tailSection() string {
	text, err := p.Log()
	if err != nil || text == "" {
		return "\n  (its log " + filepath.Base(p.log) + " is empty)"
	}
	lines := lastLines(withoutFlags(text), tailLines)
	return "\n  end of its log:\n    " + strings.ReplaceAll(lines, "\n", "\n    ")
}

// withoutFlags drops the lines in which Kubernetes components list their flags, a hundred of them, which would
// push what matters out of the end of a log.
func withoutFlags(log string) string {
	var kept []string
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "] FLAG: --") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

var errClosed = errors.New("the cluster is closed")
