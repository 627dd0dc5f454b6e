package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// unpacked returns a folder with a script for each image, which runs its program as the manifests have it, and a folder
// that the programs may write to.
func unpacked(t *testing.T) (bin, shared string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("running a program in the files of its image alone needs root")
	}
	out := t.TempDir()
	shared, err := os.MkdirTemp("", "run-") // short: a socket's path holds 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(shared) })
	if err := os.Chown(shared, 65532, 65532); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"unpack", "--from=" + folder(t), "--out=" + out, "--bind=" + shared}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(out, "bin"), shared
}

// Each program runs from its image's files: as nobody, without capabilities, on a root that nobody may change; and
// those of Go reach the engine, in their own process and by its socket.
func TestProgramsRunFromTheirImages(t *testing.T) {
	bin, shared := unpacked(t)
	socket := filepath.Join(shared, "loadlined.sock")
	engine := exec.Command(filepath.Join(bin, "loadlined"), "--socket="+socket)
	engine.Stderr = os.Stderr
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		engine.Process.Signal(os.Interrupt)
		engine.Wait()
	}()
	serves := func() bool {
		return exec.Command(filepath.Join(bin, "loadlined"), "--check="+socket).Run() == nil
	}
	for range 100 {
		if serves() {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if !serves() {
		t.Fatal("the engine does not serve")
	}
	for _, c := range []struct {
		command []string
		want    string
	}{
		{[]string{"loadline", "version"}, "engine 0."},
		{[]string{"loadline", "version", "--engine=unix://" + socket}, "engine 0."},
		{[]string{"loadline-scheduler", "--version"}, "Kubernetes v1."},
	} {
		out, err := exec.Command(filepath.Join(bin, c.command[0]), c.command[1:]...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%v: %v: %s", c.command, err, out)
		}
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(engine.Process.Pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Uid:\t65532\t65532\t65532\t65532", "CapPrm:\t0000000000000000",
		"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1",
		"Seccomp:\t2"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("the engine's status lacks %q:\n%s", want, status)
		}
	}
	mounts, err := os.ReadFile("/proc/" + strconv.Itoa(engine.Process.Pid) + "/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mounts), " / ro,") {
		t.Errorf("the engine's root may be changed:\n%s", mounts)
	}
}
