package contain

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// asked names, in a process of its own, the system call that the test asks for behind the filter.
const asked = "LOADLINE_TEST_CALL"

var calls = map[string]func() error{
	"user namespace": func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"clone of a namespace": func() error {
		_, _, errno := unix.RawSyscall(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0)
		return errno
	},
	"clone3": func() error { // glibc and Go fall back to clone
		_, _, errno := unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0)
		return errno
	},
	"keyring":                     func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true); return err },
	"socket of a virtual machine": func() error { _, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0); return err },
	"socket of this machine":      func() error { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err },
	"socket of the network":       func() error { _, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0); return err },
	"thread": func() error {
		done := make(chan struct{})
		go func() { runtime.LockOSThread(); close(done) }()
		<-done
		return nil
	},
}

func TestMain(m *testing.M) {
	call, ok := calls[os.Getenv(asked)]
	if !ok {
		os.Exit(m.Run())
	}
	runtime.LockOSThread()
	if err := filterCalls(); err != nil {
		os.Stdout.WriteString("no filter: " + err.Error())
		return
	}
	var errno unix.Errno
	if errors.As(call(), &errno) && errno != 0 {
		os.Stdout.WriteString(unix.ErrnoName(errno))
	}
}

// The calls that RuntimeDefault refuses are refused, with the error that programs fall back upon, and the others are
// not.
func TestCallsAreFiltered(t *testing.T) {
	want := map[string]string{"user namespace": "EPERM", "clone of a namespace": "EPERM", "clone3": "ENOSYS",
		"keyring": "EPERM", "socket of a virtual machine": "EPERM"}
	for name := range calls {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), asked+"="+name)
		out, err := command.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want[name] {
			t.Errorf("%s: %q, error %v, want %q", name, got, err, want[name])
		}
	}
}
