// Package wholefile writes files that others read as a whole or not at all.
package wholefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Write puts what write writes in the place of the file. Where that fails, the file is as it was.
func Write(path string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // after the rename there is none
	err = write(file)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
