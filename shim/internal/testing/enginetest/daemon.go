package enginetest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
)

// Daemon is a loadlined on a socket of its own. It ends with the test.
type Daemon struct {
	t        testing.TB
	Socket   string
	Accepted time.Time // when the socket last began to accept connections
	command  *exec.Cmd
	flags    []string
}

// StartDaemon starts a daemon with further flags, and waits until it answers.
func StartDaemon(t testing.TB, flags ...string) *Daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "loadline") // t.TempDir() grows too long for a socket with the name of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &Daemon{t: t, Socket: filepath.Join(dir, "socket"), flags: flags}
	d.Start()
	t.Cleanup(d.Kill)
	return d
}

// Address returns the address of the daemon for engine.Open.
func (d *Daemon) Address() string { return "unix://" + d.Socket }

// Open returns a connection to the daemon, which ends with the test.
func (d *Daemon) Open() engine.Conn {
	d.t.Helper()
	return open(d.t, d.Address())
}

// Start starts the daemon, after it was killed, and waits until it answers.
func (d *Daemon) Start() {
	d.t.Helper()
	d.command = exec.Command(Program(d.t), append([]string{"--socket=" + d.Socket}, d.flags...)...)
	d.command.Stderr = d.t.Output()
	d.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := d.command.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.until("accepts no connection", func() error {
		conn, err := net.Dial("unix", d.Socket)
		if err == nil {
			conn.Close()
		}
		return err
	})
	d.Accepted = time.Now()
	conn, err := engine.Open(d.Address())
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close()
	client := loadlinev1.NewClusterStateClient(conn)
	d.until("does not answer", func() error {
		ctx, cancel := context.WithTimeout(d.t.Context(), time.Second)
		defer cancel()
		_, err := client.Describe(ctx, &loadlinev1.DescribeRequest{})
		return err
	})
}

// until tries something until it succeeds. `problem` is what to say of the daemon if it never does.
func (d *Daemon) until(problem string, try func() error) {
	d.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("loadlined %s: %v", problem, err)
		}
	}
}

// Kill ends the daemon at once.
func (d *Daemon) Kill() {
	if d.command != nil {
		d.command.Process.Kill()
		d.command.Wait()
		d.command = nil
	}
}

// Stop makes the daemon stand still, and waits until it does: its threads hear of it one by one.
func (d *Daemon) Stop() {
	d.t.Helper()
	d.signal(syscall.SIGSTOP)
	threads := fmt.Sprintf("/proc/%d/task/*/stat", d.command.Process.Pid)
	d.until("does not stop", func() error {
		files, err := filepath.Glob(threads)
		if err != nil {
			return err
		}
		for _, file := range files {
			stat, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "T") {
				return fmt.Errorf("a thread is in state %.1s", state)
			}
		}
		return nil
	})
}

// Continue lets a stopped daemon go on.
func (d *Daemon) Continue() {
	d.t.Helper()
	d.signal(syscall.SIGCONT)
}

func (d *Daemon) signal(signal syscall.Signal) {
	d.t.Helper()
	if err := d.command.Process.Signal(signal); err != nil {
		d.t.Fatal(err)
	}
}

// PeakBytes returns the most memory that the daemon had at a time.
func (d *Daemon) PeakBytes() int64 {
	d.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.command.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(data), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(line, &kib); err != nil {
		d.t.Fatalf("VmHWM: %v", err)
	}
	return kib << 10
}
