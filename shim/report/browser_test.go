package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/websocket"
)

// browser is a headless Chromium that shows one page.
type browser struct {
	t    *testing.T
	conn *websocket.Conn
	id   int
}

// open shows a file in a browser. Without Chromium the test fails.
func open(t *testing.T, file string) *browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		t.Fatal("no Chromium in PATH: run `make deps`, or install Debian's package chromium")
	}
	profile, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, "--headless", "--no-sandbox", "--disable-gpu",
		"--remote-debugging-port=0", "--remote-allow-origins=*", "--user-data-dir="+profile, "about:blank")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // its helpers write to the profile until they end
		_ = command.Wait()
		_ = os.RemoveAll(profile)
	})
	address := ""
	for lines := bufio.NewScanner(stderr); address == "" && lines.Scan(); {
		if _, rest, ok := strings.Cut(lines.Text(), "DevTools listening on ws://"); ok {
			address, _, _ = strings.Cut(rest, "/")
		}
	}
	request, err := http.NewRequest(http.MethodPut, "http://"+address+"/json/new?file://"+file, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var target struct{ WebSocketDebuggerURL string }
	if err := json.NewDecoder(answer.Body).Decode(&target); err != nil {
		t.Fatal(err)
	}
	conn, err := websocket.Dial(target.WebSocketDebuggerURL, "", "http://localhost")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &browser{t: t, conn: conn}
}

// call calls a method of the DevTools protocol.
func (b *browser) call(method string, params any, result any) {
	b.t.Helper()
	b.id++
	if err := websocket.JSON.Send(b.conn, map[string]any{"id": b.id, "method": method, "params": params}); err != nil {
		b.t.Fatal(err)
	}
	_ = b.conn.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := websocket.JSON.Receive(b.conn, &answer); err != nil {
			b.t.Fatal(err)
		}
		if answer.ID != b.id { // an event
			continue
		}
		if answer.Error != nil {
			b.t.Fatal(method, ": ", answer.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(answer.Result, result); err != nil {
				b.t.Fatal(err)
			}
		}
		return
	}
}

// look is what the script below finds.
type look struct {
	Ready                 bool
	Width, Inner, Loaded  int
	Sections              int
	Text, Soft, Lightness float64
}

// The contrast of texts with the ground is that of WCAG 2.
const script = `(() => {
  const channel = c => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
  const light = e => {
    const [r, g, b] = e.match(/[\d.]+/g).map(Number);
    return .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
  };
  const ground = light(getComputedStyle(document.body).backgroundColor);
  const contrast = e => {
    const l = light(getComputedStyle(e).color);
    return (Math.max(l, ground) + .05) / (Math.min(l, ground) + .05);
  };
  return {Ready: document.readyState === "complete" && document.styleSheets.length === 1,
    Width: document.documentElement.scrollWidth, Inner: innerWidth,
    Loaded: performance.getEntriesByType("resource").length, Sections: document.querySelectorAll("h2, figure").length,
    Text: contrast(document.querySelector("h1")), Soft: contrast(document.querySelector("p.soft")), Lightness: ground};
})()`

func (b *browser) look(width int, scheme string) (l look) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	until := time.Now().Add(30 * time.Second)
	for ; !l.Ready && time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		var result struct{ Result struct{ Value look } }
		b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true}, &result)
		l = result.Result.Value
	}
	return l
}

// In a browser the pages need nothing from elsewhere, fit on a phone as on a screen, and can be read in light and in
// dark.
func TestPagesInBrowser(t *testing.T) {
	steps := Steps{Title: "Cost", Verdict: "v", Lines: []string{"l"},
		Charts: []StepChart{{Title: "c", Series: []StepSeries{{Name: "a", Points: []StepPoint{{0, 1}, {300, 2}}}}}}}
	full := largeAutoscaler()
	full.Lines = []string{"15000 nodes."}
	full.Tables = []TitledGrid{
		{Title: "Why nodes stay", Grid: Grid{Header: []string{"A", "B", "C", "D"},
			Rows: [][]string{{strings.Repeat("name-", 30), "b", "c", strings.Repeat("a long text ", 20)}}}}}
	for name, draw := range map[string]func(*bytes.Buffer) error{
		"Autoscaler": func(out *bytes.Buffer) error { return AutoscalerPage(out, full) },
		"Steps":      func(out *bytes.Buffer) error { return StepsPage(out, steps) },
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := draw(&out); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "page.html")
			if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			b := open(t, file)
			for _, width := range []int{390, 1280} {
				for scheme, dark := range map[string]bool{"light": false, "dark": true} {
					l := b.look(width, scheme)
					what := fmt.Sprintf("%d wide, %s: %+v", width, scheme, l)
					if !l.Ready || l.Loaded != 0 || l.Sections == 0 {
						t.Errorf("it is not there as a whole, or loads something: %s", what)
					}
					if l.Inner != width || l.Width > l.Inner {
						t.Errorf("it is wider than the window: %s", what)
					}
					if l.Text < 7 || l.Soft < 4.5 || dark != (l.Lightness < 0.2) {
						t.Errorf("it cannot be read well: %s", what)
					}
				}
			}
		})
	}
}
