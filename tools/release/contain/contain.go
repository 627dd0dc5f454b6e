// Package contain runs the program of an image as the manifests have a cluster run it: in the image's files alone,
// which nobody may change, without capabilities and without a way to get any, behind the runtime's filter of system
// calls. It needs to be root. What a cluster adds and this does not: limits of resources and a network of its own.
package contain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// A Container says how to run a program.
type Container struct {
	// Root is the folder that Unpack has filled.
	Root string
	// Binds are folders of this machine that the program sees under the same path and may write to.
	Binds []string
	UID   int
	// Args begin with the path of the program inside of Root. Env is all that it gets.
	Args, Env []string
}

// Exec turns this process into the program. It returns only on an error, and then the process is good for nothing else.
func (c Container) Exec() error {
	runtime.LockOSThread() // what follows is a matter of this thread, and exec keeps the thread that asks
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a mount namespace of its own: %w: this needs to be root", err)
	}
	if err := c.mount(); err != nil {
		return err
	}
	if err := unix.Chroot(c.Root); err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	if err := dropRights(c.UID); err != nil {
		return err
	}
	if err := filterCalls(); err != nil {
		return err
	}
	if err := unix.Exec(c.Args[0], c.Args, c.Env); err != nil {
		return fmt.Errorf("%s: %w", c.Args[0], err)
	}
	return nil
}

// mount makes Root read-only, with what is to be seen of the machine below it.
func (c Container) mount() error {
	type mount struct {
		from, to string
		flags    uintptr
	}
	mounts := []mount{
		{"none", "/", unix.MS_REC | unix.MS_PRIVATE},
		{c.Root, c.Root, unix.MS_BIND},
		{"none", c.Root, unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV},
	}
	for _, dir := range append([]string{"/proc", "/dev"}, c.Binds...) {
		target := filepath.Join(c.Root, dir)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		mounts = append(mounts, mount{dir, target, unix.MS_BIND | unix.MS_REC})
	}
	for _, m := range mounts {
		if err := unix.Mount(m.from, m.to, "", m.flags, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", m.to, err)
		}
	}
	return nil
}

// dropRights leaves this thread a user without capabilities, of whom no program that it starts gets more.
func dropRights(uid int) error {
	for capability := range uintptr(64) {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("dropping capability %d: %w", capability, err) // EINVAL: the kernel has fewer
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	id := uintptr(uid)
	for _, call := range []struct {
		name    string
		number  uintptr
		a, b, c uintptr
	}{
		{"setgroups", unix.SYS_SETGROUPS, 0, 0, 0},
		{"setresgid", unix.SYS_SETRESGID, id, id, id},
		{"setresuid", unix.SYS_SETRESUID, id, id, id},
	} {
		// Raw: of this thread alone, as the rest is.
		if _, _, errno := unix.RawSyscall(call.number, call.a, call.b, call.c); errno != 0 {
			return fmt.Errorf("%s: %w", call.name, errno)
		}
	}
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

// Environment returns those of the variables that are set here, as NAME=VALUE.
func Environment(names ...string) []string {
	var env []string
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok && !strings.Contains(value, "\x00") {
			env = append(env, name+"="+value)
		}
	}
	return env
}
