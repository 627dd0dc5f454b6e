package elf

import (
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// A Stripped program is one without symbols, with these beside it.
type Stripped struct {
	Content []byte
	// Debug holds what was taken away, and DebugPath is where debuggers look for it: by the build ID, which both have.
	Debug     []byte
	DebugPath string
}

// LLVM's tools take the programs of all architectures.
const (
	stripTool   = "llvm-strip-14"
	objcopyTool = "llvm-objcopy-14"
)

// Strip takes the symbols off a program or library. Where these have been taken off before, they stand beside it, in a
// file whose name ends in .debug. Equal files give equal bytes.
func Strip(file string) (Stripped, error) {
	id, err := buildID(file)
	if err != nil {
		return Stripped{}, fmt.Errorf("%s: %w", file, err)
	}
	dir, err := os.MkdirTemp("", "strip-")
	if err != nil {
		return Stripped{}, err
	}
	defer os.RemoveAll(dir)
	program, debug := filepath.Join(dir, "program"), filepath.Join(dir, "debug")
	symbols := file
	if _, err := os.Stat(file + ".debug"); err == nil {
		symbols = file + ".debug"
		if other, err := buildID(symbols); err != nil || other != id {
			return Stripped{}, fmt.Errorf("%s has the symbols of another build than %s: build both again", symbols, file)
		}
	}
	for _, command := range []*exec.Cmd{
		exec.Command(stripTool, "--strip-all", "-o", program, file),
		exec.Command(objcopyTool, "--only-keep-debug", symbols, debug),
	} {
		if out, err := command.CombinedOutput(); err != nil {
			return Stripped{}, fmt.Errorf("%v: %w: %s", command.Args, err, out)
		}
	}
	s := Stripped{DebugPath: fmt.Sprintf("/usr/lib/debug/.build-id/%s/%s.debug", id[:2], id[2:])}
	if s.Content, err = os.ReadFile(program); err != nil {
		return Stripped{}, err
	}
	s.Debug, err = os.ReadFile(debug)
	return s, err
}

// buildID returns the number in hexadecimal digits by which a linker names what it has linked.
func buildID(file string) (string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	section := f.Section(".note.gnu.build-id")
	if section == nil {
		return "", errors.New("it has no build ID: link it with --build-id")
	}
	note, err := section.Data()
	if err != nil {
		return "", err
	}
	const header = 16 // three words of four bytes, and "GNU\0"
	if len(note) < header+2 {
		return "", fmt.Errorf("its build ID has %d bytes", len(note)-header)
	}
	return hex.EncodeToString(note[header:]), nil
}
