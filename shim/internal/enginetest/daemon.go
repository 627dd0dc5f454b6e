package enginetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
)

// Daemon is a loadlined on a socket of its own. It ends with the test.
type Daemon struct {
	t       testing.TB
	Socket  string
	command *exec.Cmd
}

// StartDaemon starts a daemon and waits until it answers.
func StartDaemon(t testing.TB) *Daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "loadline") // t.TempDir() grows too long for a socket with the name of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &Daemon{t: t, Socket: filepath.Join(dir, "socket")}
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
	d.command = exec.Command(Program(d.t), "--socket="+d.Socket)
	d.command.Stderr = d.t.Output()
	d.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := d.command.Start(); err != nil {
		d.t.Fatal(err)
	}
	conn, err := engine.Open(d.Address())
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close()
	client := loadlinev1.NewClusterStateClient(conn)
	for deadline := time.Now().Add(10 * time.Second); ; {
		ctx, cancel := context.WithTimeout(d.t.Context(), time.Second)
		_, err := client.Describe(ctx, &loadlinev1.DescribeRequest{})
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("loadlined does not answer: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
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

// Signal sends the daemon a signal, such as SIGSTOP or SIGCONT.
func (d *Daemon) Signal(signal syscall.Signal) {
	d.t.Helper()
	if err := d.command.Process.Signal(signal); err != nil {
		d.t.Fatal(err)
	}
}
