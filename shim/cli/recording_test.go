package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/engine"
)

// planned is an engine that says when it has planned a loop.
type planned struct {
	engine.Conn
	loops chan bool
}

func (p *planned) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	err := p.Conn.Invoke(ctx, method, args, reply, options...)
	if err == nil && strings.HasSuffix(method, "/PlanLoop") {
		p.loops <- true
	}
	return err
}

// recording returns a file with what an engine of an autoscaler of this cluster is given in some loops.
func (a *asker) recording(loops int, args ...string) string {
	a.Helper()
	file, err := os.Create(filepath.Join(a.TempDir(), "loop.rec"))
	if err != nil {
		a.Fatal(err)
	}
	defer file.Close()
	conn, err := engine.Open("inprocess")
	if err != nil {
		a.Fatal(err)
	}
	defer conn.Close()
	listening := &planned{conn, make(chan bool, 100)}
	stop := a.runAutoscaler(engine.Record(listening, file), args...)
	for range loops {
		select {
		case <-listening.loops:
		case <-time.After(time.Minute):
			a.Fatal("no loop")
		}
	}
	stop()
	return file.Name()
}

// Recordings that follow each other are one. Each loop is found by its number.
func TestLoopOfARecording(t *testing.T) {
	folder := t.TempDir()
	one, two := filepath.Join(folder, "1"), filepath.Join(folder, "2")
	planJSON(t, "--record", one)
	if _, errs, code := run(t, "loadline", "", "plan", "-f", "../../docs/shop.yaml", "--record", two); code != 0 {
		t.Fatal(errs)
	}
	var both bytes.Buffer
	packed := gzip.NewWriter(&both)
	for _, name := range []string{one, two} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		packed.Write(data)
	}
	packed.Close()
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"-f -", "\n3 nodes, 7 pods, 2 of them pending.", 0}, // as docs/shop.yaml has
		{"-f - --loop 2", "\n3 nodes, 7 pods, 2 of them pending.", 0},
		{"-f - --loop 1", "\n1 node, 4 pods, 3 of them pending.", 0}, // as testdata/plan.yaml has
		{"-f - --loop 3", "standard input: the recording holds no loop 3: its last one is 2", 1},
		{"-f - --loop -1", `invalid argument "-1" for "--loop" flag: must be a whole number from 1`, 2},
		{"-f - --loop 0", `invalid argument "0" for "--loop" flag: must be a whole number from 1`, 2},
		{"-f ../../docs/shop.yaml --loop 1", "--loop 1: nothing that -f names is a recording", 2},
		{"--loop 1", "--loop 1: must be the number of a loop in a recording, which -f names", 2},
	} {
		out, errs, code := run(t, "loadline", both.String(), append([]string{"top"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: exit %d, %s%s", c.args, code, out, errs)
		}
	}
	if _, errs, code := run(t, "loadline", "", "fit", "-p", one, "-f", two); code != 1 ||
		!strings.Contains(errs, "it is a recording") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// A recording that ends within a call is read up to the last whole loop, by `replay` too. `why NODE`, which asks three
// questions, reads it once, and takes the time of the loop.
func TestCutRecording(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cut.rec")
	planJSON(t, "--record", file, "--now", "2026-02-17T09:00:00Z")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := slices.Concat(whole, whole[:len(whole)-300]) // behind the plan is a call of some 30 bytes
	if err := os.WriteFile(file, cut, 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := run(t, "loadline", "", "why", "node-1", "-f", file)
	cutNote := "warning: " + file + ": the recording ends within a call, which is left out"
	if code != 0 || errs != cutNote+"; loop 1 is the last whole one\nwarning: "+file+
		": the cluster is that of loop 1, of 2026-02-17T09:00:00Z, as the engine was given it\n" ||
		!strings.HasPrefix(out, "node-1 stays: ") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	out, errs, code = run(t, "loadline", "", "replay", file)
	if code != 0 || strings.Count(out, "PlanLoop") != 1 || errs != cutNote+"\n" {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

// The autoscaler's own flag writes what replay reads.
func TestAutoscalerRecords(t *testing.T) {
	settings := config.Default()
	settings.Engine = "inprocess"
	f := autoscalerFlags{record: filepath.Join(t.TempDir(), "loop.rec")}
	conn, err := f.open(&settings)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = loadlinev1.NewClusterStateClient(conn).Drop(t.Context(), &loadlinev1.DropRequest{View: "a"})
	if status.Code(err) != codes.NotFound {
		t.Fatal(err)
	}
	out, errs, code := run(t, "loadline", "", "replay", f.record)
	if code != 0 || !strings.Contains(out, "/loadline.v1.ClusterState/Drop   the same, NotFound") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	before, err := os.ReadFile(f.record)
	if err != nil || len(before) == 0 {
		t.Fatal(len(before), err)
	}
	next, err := f.open(&settings) // as another process does
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if kept, err := os.ReadFile(f.record + ".1"); err != nil || !bytes.Equal(kept, before) {
		t.Errorf("%d bytes of the former recording, want %d: %v", len(kept), len(before), err)
	}
	f.record = t.TempDir() // a folder
	if _, err := f.open(&settings); err == nil || !strings.Contains(err.Error(), f.record) {
		t.Error(err)
	}
}
