package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// A sandbox is a temporary folder and the processes that live in it. Both go together: on close; on SIGINT,
// SIGTERM and SIGHUP, which close every sandbox and end the program; and when the program dies without a word,
// where the kernel kills the processes and a watchman removes the folder.
type sandbox struct {
	dir string
	// ctx ends when the sandbox closes, before the first process is stopped. All that this program itself keeps
	// open towards the components belongs to it: a kube-apiserver waits for its watchers before it ends.
	ctx    context.Context
	cancel context.CancelFunc

	mu        sync.Mutex
	processes []*Process // in order of start; guarded by mu
	closed    bool       // guarded by mu
	watchman  *watchman
	once      sync.Once // runs shutDown; the second caller waits for the first
	err       error     // of shutDown; read after once
}

// A unix socket's path holds at most 107 bytes, and TMPDIR may be anything.
const maxSandboxPath = 60

func newSandbox() (*sandbox, error) {
	base := os.TempDir()
	if len(base)+len("/ll-0123456789") > maxSandboxPath {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, "ll-")
	if err != nil {
		return nil, err
	}
	guard, err := startWatchman(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for _, sub := range []string{"log", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir), guard.dismiss())
		}
	}
	s := &sandbox{dir: dir, watchman: guard}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	register(s)
	return s, nil
}

// start runs a component and waits until it is ready. One that does not get ready is stopped again.
func (s *sandbox) start(ctx context.Context, spec processSpec) (*Process, error) {
	spec.dir = s.dir
	spec.log = filepath.Join(s.dir, "log", spec.name+".log")
	spec.env = append([]string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + s.dir, // whatever a component keeps "at home" is removed with the folder
		"TMPDIR=" + filepath.Join(s.dir, "tmp"),
		"NO_PROXY=*", // everything here is on loopback
	}, spec.env...)
	process, err := s.launch(spec)
	if err != nil {
		return nil, err
	}
	if spec.ready == nil {
		return process, nil
	}
	if err := process.waitReady(ctx, spec.ready); err != nil {
		if process.Running() {
			process.Kill()
		}
		s.forget(process)
		return nil, err
	}
	return process, nil
}

// launch starts the process under the lock: a close that runs at the same time sees it, or prevents it.
func (s *sandbox) launch(spec processSpec) (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	process, err := startProcess(spec)
	if err != nil {
		return nil, err
	}
	s.processes = append(s.processes, process)
	return process, nil
}

// forget takes a process that has ended off the list, so that close says nothing about how it ended.
func (s *sandbox) forget(process *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes = slices.DeleteFunc(s.processes, func(p *Process) bool { return p == process })
}

// replace puts a process in the place of one that has ended, so that it ends after those that need it.
func (s *sandbox) replace(old, new *Process) {
	s.forget(new)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.processes {
		if s.processes[i] == old {
			s.processes[i] = new
		}
	}
}

// stop stops one process ahead of the others.
func (s *sandbox) stop(process *Process) error {
	defer s.forget(process)
	return process.Stop()
}

func (s *sandbox) snapshot() []*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.processes)
}

// close stops the processes, the last started first, and removes the folder. That order matters: a
// kube-apiserver whose etcd has gone hangs until it is killed. Later calls return the same again.
func (s *sandbox) close() error {
	s.once.Do(func() { s.err = s.shutDown() })
	return s.err
}

func (s *sandbox) shutDown() error {
	s.mu.Lock()
	s.closed = true
	processes := slices.Clone(s.processes)
	s.mu.Unlock()
	s.cancel()
	unregister(s)
	var errs []error
	for _, process := range slices.Backward(processes) {
		errs = append(errs, process.Stop())
	}
	errs = append(errs, os.RemoveAll(s.dir), s.watchman.dismiss())
	return errors.Join(errs...)
}

// A watchman is a shell that waits for the end of its standard input, which it sees when we close the pipe or die in
// any way, and then removes the folder. Processes that the kernel is just killing may still write into it, so it looks
// again until the folder stays away.
type watchman struct {
	cmd  *exec.Cmd
	pipe *os.File
}

const watchmanScript = `trap '' INT TERM HUP
read -r _
i=0
while [ -e "$1" ] && [ $i -lt 100 ]; do
  rm -rf "$1" 2>/dev/null
  i=$((i + 1))
  sleep 0.1
done`

func startWatchman(dir string) (*watchman, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	cmd := exec.Command("/bin/sh", "-c", watchmanScript, "sh", dir)
	cmd.Dir = "/"
	cmd.Stdin = read
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the watchman: %w", err), write.Close())
	}
	return &watchman{cmd: cmd, pipe: write}, nil
}

func (w *watchman) dismiss() error { return errors.Join(w.pipe.Close(), w.cmd.Wait()) }

var open struct {
	mu        sync.Mutex
	sandboxes []*sandbox // guarded by mu
	once      sync.Once
}

func register(s *sandbox) {
	open.mu.Lock()
	defer open.mu.Unlock()
	open.sandboxes = append(open.sandboxes, s)
	open.once.Do(func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		go endOnSignal(signals)
	})
}

func unregister(s *sandbox) {
	open.mu.Lock()
	defer open.mu.Unlock()
	open.sandboxes = slices.DeleteFunc(open.sandboxes, func(other *sandbox) bool { return other == s })
}

// endOnSignal closes every sandbox and ends the program as a shell reports it: 128 + signal. A second signal
// ends it at once and leaves the rest to the kernel and the watchman.
func endOnSignal(signals chan os.Signal) {
	received := <-signals
	number, _ := received.(syscall.Signal)
	go func() {
		<-signals
		os.Exit(128 + int(number))
	}()
	fmt.Fprintf(os.Stderr, "%v: stopping the control plane\n", received)
	open.mu.Lock()
	sandboxes := slices.Clone(open.sandboxes)
	open.mu.Unlock()
	for _, s := range sandboxes {
		if err := s.close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(128 + int(number))
}
