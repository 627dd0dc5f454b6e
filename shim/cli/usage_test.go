package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrongUsageOfUsage(t *testing.T) {
	for _, c := range []struct {
		args, says string
	}{
		{"usage", "one of --prometheus URL, --metrics-api and --from FILE"},
		{"usage --metrics-api --from x", "one of --prometheus URL"},
		{"usage --metrics-api --once", "knows one minute alone"},
		{"usage --prometheus x --owners me", `--owners "me": must be kube-state-metrics or api`},
		{"usage --from x --days 32", "--days 32: must be 1 to 31"},
		{"usage --from x --percentile 0", "--percentile 0: must be 1 to 100"},
		{"usage --from x --max-workloads 10001", "--max-workloads 10001: must be 1 to 10000"},
		{"usage --prometheus x --step 7m", "--step 7m0s: must be 15s to 1h, and divide an hour"},
		{"usage --prometheus x --rate-window 1s", "--rate-window 1s: must be"},
		{"usage --prometheus x --timeout 1h", "--timeout 1h0m0s: must be"},
		{"usage --prometheus x --max-series 0", "--max-series 0: must be"},
		{"usage --prometheus x --max-answer-bytes 1", "--max-answer-bytes 1: must be"},
		{"usage --metrics-api --poll-interval 1s", "--poll-interval 1s: must be"},
		{"usage --metrics-api --write-interval 1s", "--write-interval 1s: must be"},
	} {
		t.Run(c.args, func(t *testing.T) {
			_, errors, code := run(t, "loadline", "", strings.Fields(c.args)...)
			if code != exitUsage || !strings.Contains(errors, c.says) {
				t.Errorf("exit code %d, %s; want %q", code, errors, c.says)
			}
		})
	}
}

func TestUsageFromAFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "use.csv")
	samples := `time,namespace,kind,name,cpu_milli,memory_bytes
2026-11-18T09:00:00Z,shop,Deployment,web,200,1000
2026-11-18T09:30:00Z,shop,Deployment,web,100,3000
2026-11-19T09:00:00Z,shop,Deployment,web,150,2000
2026-11-19T23:00:00Z,shop,Deployment,web,,0
2026-11-10T09:00:00Z,shop,Deployment,web,9999,9999
`
	if err := os.WriteFile(path, []byte(samples), 0o600); err != nil {
		t.Fatal(err)
	}
	// The 90th percentile of three samples is the third, and 200 lies in the bucket of 200 to 203. The last sample is
	// older than seven days. 23 o'clock has one day.
	const want = `namespace,kind,name,resource,samples,days,first,last,h00,h01,h02,h03,h04,h05,h06,h07,h08,h09,h10,h11,h12,h13,h14,h15,h16,h17,h18,h19,h20,h21,h22,h23,limit
shop,Deployment,web,cpu_milli,3,1,2026-11-18T09:00:00Z,2026-11-19T23:00:00Z,,,,,,,,,,203,,,,,,,,,,,,,,,
shop,Deployment,web,memory_bytes,3,1,2026-11-18T09:00:00Z,2026-11-19T23:00:00Z,,,,,,,,,,3000,,,,,,,,,,,,,,0,
`
	out, errors, code := run(t, "loadline", "", "usage", "--from", path, "--output", "-")
	if code != exitOK || out != want {
		t.Errorf("exit code %d, %s\n%s\nwant\n%s", code, errors, out, want)
	}
	file := filepath.Join(folder, "profiles.csv")
	if _, errors, code = run(t, "loadline", "", "usage", "--from", path, "--output", file); code != exitOK {
		t.Error(errors)
	}
	if written, err := os.ReadFile(file); err != nil || string(written) != want {
		t.Errorf("%v\n%s", err, written)
	}
	_, errors, code = run(t, "loadline", "", "usage", "--from", filepath.Join(folder, "none.csv"), "--output", "-")
	if code != exitFailure || !strings.Contains(errors, "no such file") {
		t.Errorf("exit code %d, %s", code, errors)
	}
}

// A pipe is read as a file is, and samples that are left out are named.
func TestUsageFromStandardInput(t *testing.T) {
	const head = "time;namespace;kind;name;cpu_milli;memory_bytes\n"
	out, errors, code := run(t, "loadline", "\ufeff"+head+"2026-11-18 09:00:00;shop;Deployment;web;250m;1Gi\n"+
		"4000000000;shop;Deployment;web;1;1\n", "usage", "--from", "-", "--output", "-")
	if code != exitOK || !strings.Contains(out, "shop,Deployment,web,memory_bytes,1,1,2026-11-18T09:00:00Z") ||
		!strings.Contains(out, ",1073741824,") {
		t.Errorf("exit code %d, %s\n%s", code, errors, out)
	}
	_, errors, code = run(t, "loadline", head+"1795003200;shop;Deployment;web;many;\n", "usage", "--from", "-",
		"--output", "-")
	if code != exitFailure || !strings.Contains(errors,
		`all samples were left out: 1 no amounts, such as record 1: cpu_milli "many"`) {
		t.Errorf("exit code %d, %s", code, errors)
	}
}
