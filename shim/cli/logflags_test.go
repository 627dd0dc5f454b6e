package cli

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
)

// With --logging-format=json each line is an object with the fields of other components; the level holds in either
// form.
func TestLogFormats(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) {
			reset := func() {
				klog.StopFlushDaemon() // it reads what is set here, without a lock
				if err := logsapi.ResetForTest(nil); err != nil {
					t.Fatal(err)
				}
			}
			reset()
			t.Cleanup(reset)
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			logs := addLogFlags(flags, 2)
			if err := flags.Parse([]string{"--logging-format=" + format}); err != nil {
				t.Fatal(err)
			}
			lines := stderrOf(t, func() {
				if err := logs.apply(); err != nil {
					t.Error(err)
				}
				klog.V(2).InfoS("Draining", "node", "n1")
				klog.V(3).InfoS("not to be seen")
				klog.Flush()
			})
			if len(lines) != 1 {
				t.Fatalf("%q", lines)
			}
			if format == "text" {
				if !strings.HasPrefix(lines[0], "I") || !strings.HasSuffix(lines[0], `] "Draining" node="n1"`) {
					t.Errorf("%q", lines[0])
				}
				return
			}
			var line struct {
				TS        float64
				Caller    string
				Msg, Node string
				V         int
			}
			if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
				t.Fatal(err, lines[0])
			}
			if line.TS == 0 || !strings.Contains(line.Caller, "logflags_test.go") || line.Msg != "Draining" ||
				line.Node != "n1" || line.V != 2 {
				t.Errorf("%q is %+v", lines[0], line)
			}
		})
	}
}

// stderrOf returns the lines that a function writes to standard error.
func stderrOf(t *testing.T, f func()) []string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = write
	f()
	os.Stderr = before
	klog.SetOutput(before)
	write.Close()
	text, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
