package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"loadline.dev/shim/internal/wholefile"
)

// Journal is a folder with the rows that are done: one line each, written at once. A line that was cut off by the end
// of the machine is left out, and its row is simulated again. One process at a time has it.
type Journal struct {
	dir  string
	mu   sync.Mutex
	file *os.File     // guarded by mu
	rows map[int]*Row // likewise
}

// head is the first line: what the rows follow from.
type head struct {
	Sweep  string `json:"sweep"`
	Engine string `json:"engine"`
}

const journalName = "rows.jsonl"

// OpenJournal opens the folder, or makes it. It must be of the same plan and the same version of the engine.
func OpenJournal(dir string, plan *Plan, engine string) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, journalName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	j := &Journal{dir: dir, file: file, rows: map[int]*Row{}}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: another process writes there: %w", dir, err)
	}
	if err := j.read(plan, head{plan.Digest, engine}); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, journalName), err)
	}
	return j, nil
}

func (j *Journal) read(plan *Plan, want head) error {
	content, err := io.ReadAll(j.file)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(content, '\n') + 1
	if err := j.file.Truncate(int64(whole)); err != nil {
		return err
	}
	if _, err := j.file.Seek(int64(whole), io.SeekStart); err != nil {
		return err
	}
	if whole == 0 {
		return j.write(want)
	}
	for i, line := range bytes.Split(content[:whole-1], []byte("\n")) {
		if i == 0 {
			var is head
			switch err := json.Unmarshal(line, &is); {
			case err != nil:
				return fmt.Errorf("line 1: %w", err)
			case is.Sweep != want.Sweep:
				return errors.New("has the rows of another sweep, or of other inputs: name another folder with --results")
			case is.Engine != want.Engine:
				return fmt.Errorf("has rows of engine %s, and this one is %s: name another folder with --results", is.Engine,
					want.Engine)
			}
			continue
		}
		row := &Row{}
		if err := json.Unmarshal(line, row); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		if row.Row < 0 || row.Row >= plan.Rows() {
			return fmt.Errorf("line %d: there is no row %d", i+1, row.Row)
		}
		j.rows[row.Row] = row
	}
	return nil
}

func (j *Journal) write(line any) error {
	content, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(content, '\n'))
	return err
}

// Add takes note of a row, once: the same one again changes nothing, and another one of its number is an error. Any
// goroutine.
func (j *Journal) Add(row *Row) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if there := j.rows[row.Row]; there != nil {
		if *there != *row {
			return fmt.Errorf("row %d has digest %s, and had %s before: not the same inputs, or not the same engine", row.Row,
				row.Digest, there.Digest)
		}
		return nil
	}
	if err := j.write(row); err != nil {
		return err
	}
	j.rows[row.Row] = row
	return nil
}

// Rows returns those that are done, by number.
func (j *Journal) Rows() map[int]*Row {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make(map[int]*Row, len(j.rows))
	for number, row := range j.rows {
		out[number] = row
	}
	return out
}

// WriteFile writes a file of the folder as a whole or not at all.
func (j *Journal) WriteFile(name string, write func(io.Writer) error) error {
	return wholefile.Write(filepath.Join(j.dir, name), write)
}

// Close lets others have the folder.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Join(j.file.Sync(), j.file.Close())
}
