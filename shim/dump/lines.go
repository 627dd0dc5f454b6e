package dump

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"loadline.dev/shim/internal/text"
)

// lines reads the parts of a text that lines of --- divide, and leaves out the lines that are neither JSON nor YAML but
// what kubectl wrote to standard error, as `kubectl get -o json > f 2>&1` mixes them in. No line of JSON and no line of
// an object in YAML begins as those lines do.
type lines struct {
	in      *bufio.Reader
	line    int   // number of the line that is read now, from 1
	read    int64 // bytes of the text that were read
	atStart bool  // nothing of the line was read yet
	ended   error // io.EOF at the end of a part
	last    bool  // no part is behind this one
	// skipped counts the lines that were left out; first is the first of these.
	skipped int
	first   string
}

func newLines(r io.Reader) *lines {
	return &lines{in: bufio.NewReaderSize(r, 1<<16), line: 1, atStart: true}
}

// next moves on to the next part. False: there is none.
func (l *lines) next() bool {
	if l.last {
		return false
	}
	l.ended = nil
	return true
}

// Read reads of one part.
func (l *lines) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && l.ended == nil {
		if n > 0 && l.in.Buffered() == 0 {
			return n, nil // a reader of a pipe gets what there is
		}
		if l.atStart {
			if l.ended = l.startLine(); l.ended != nil {
				break
			}
		}
		read, err := l.readOn(p[n:])
		n += read
		if err != nil {
			l.end(err)
		}
	}
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, l.ended
}

// end notes that the text ends.
func (l *lines) end(err error) {
	l.last, l.ended = true, err
}

// readOn reads the line on, as far as it is in memory.
func (l *lines) readOn(p []byte) (int, error) {
	if _, err := l.in.Peek(1); err != nil {
		return 0, err
	}
	chunk, _ := l.in.Peek(min(l.in.Buffered(), len(p)))
	if i := bytes.IndexByte(chunk, '\n'); i >= 0 {
		chunk = chunk[:i+1]
	}
	if i := fillAt(chunk); i >= 0 {
		if i == 0 {
			return l.readFill(p)
		}
		chunk = chunk[:i]
	}
	n := copy(p, chunk)
	if l.atStart = chunk[n-1] == '\n'; l.atStart {
		l.line++
	}
	l.discard(n)
	return n, nil
}

func (l *lines) discard(n int) {
	n, _ = l.in.Discard(n)
	l.read += int64(n)
}

// fillAt returns the place of the first NUL, which a file has at its end after a crash, or Control-Z, which ends a text
// of DOS. Neither is in JSON or YAML.
func fillAt(chunk []byte) int {
	null, end := bytes.IndexByte(chunk, 0), bytes.IndexByte(chunk, 0x1a)
	if null < 0 || end >= 0 && end < null {
		return end
	}
	return null
}

// readFill reads NULs and Control-Zs. They are left out if nothing else is behind them.
func (l *lines) readFill(p []byte) (int, error) {
	for first := byte(0); ; {
		b, err := l.in.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case b != 0 && b != 0x1a && b != '\n' && b != '\r':
			p[0], l.atStart = first, false // the text is broken: its reader says so
			return 1, l.in.UnreadByte()
		}
		l.read++
	}
}

// startLine looks at the start of a line. io.EOF: a part ends.
func (l *lines) startLine() error {
	for {
		start, err := l.in.Peek(1)
		if err != nil {
			l.last = true
			return err
		}
		switch start[0] {
		case 0xef:
			if mark, _ := l.in.Peek(3); !bytes.Equal(mark, []byte("\uFEFF")) {
				return nil
			}
			l.discard(3) // of a file that was appended
			continue
		case '-', '.':
			l.atStart = !l.divides()
			if l.atStart {
				return nil
			}
			l.discard(3)
			return io.EOF
		case 'W', 'I', 'E', 'F', 'T', 'U', 'N', 'e', '%':
			skips, err := l.message()
			if err != nil {
				l.last = true
				return err
			}
			if skips {
				continue
			}
		}
		return nil
	}
}

// divides returns whether the line is a mark between documents. Behind it, the line may go on.
func (l *lines) divides() bool {
	start, _ := l.in.Peek(4)
	mark := bytes.HasPrefix(start, []byte("---")) || bytes.HasPrefix(start, []byte("..."))
	return mark && (len(start) == 3 || bytes.IndexByte([]byte(" \t\r\n"), start[3]) >= 0)
}

// The lines that kubectl and the programs that it calls write to standard error. The harmless ones say nothing about
// the objects beside them.
var (
	harmless = regexp.MustCompile(`^(Warning: |WARNING: |[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^ ]+:\d+\] |` +
		`Flag --[^ ]+ has been deprecated|To learn more, consult https://|%YAML )`)
	harmful = regexp.MustCompile(`^(Error from server|[Ee]rror: |Error in configuration|Unable to connect to the server|` +
		`The connection to the server |No resources found|F\d{4} \d\d:\d\d:\d\d\.\d+ )`)
)

// message skips a harmless message. Another message is an error, as objects may be missing.
func (l *lines) message() (skips bool, err error) {
	const most = 300
	line, err := l.in.Peek(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	shown := text.Bound(strings.TrimSpace(string(line)), most)
	switch {
	case harmful.Match(line):
		return false, fmt.Errorf("line %d is a message of kubectl: %q: objects may be missing; look into it, and write "+
			"standard error elsewhere, without 2>&1", l.line, shown)
	case !harmless.Match(line):
		return false, nil
	case line[0] != '%':
		if l.skipped++; l.skipped == 1 {
			l.first = fmt.Sprintf("line %d, %q", l.line, shown)
		}
	}
	for {
		part, err := l.in.ReadSlice('\n')
		l.read += int64(len(part))
		if err == nil {
			l.line++
			return true, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return true, nil // startLine meets the end again
		}
	}
}
