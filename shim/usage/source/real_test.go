package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"loadline.dev/shim/freeport"
	"loadline.dev/shim/usage/profile"
)

// openMetrics are the series of one day of two containers of a pod, a sample each minute: the first one uses as many
// tenths of a core in an hour as the hour has, the other one nothing but memory. The counter of the first one begins
// anew at noon. A second scraper reports the first one as well.
func openMetrics(begin int64) string {
	var cpu, memory, owner, set strings.Builder
	total := 0.0
	for minute := range int64(24*60 + 1) {
		at := begin + minute*60
		if minute == 12*60 {
			total = 0
		}
		for _, job := range []string{"kubelet", "other"} {
			fmt.Fprintf(&cpu, "container_cpu_usage_seconds_total{namespace=\"shop\",pod=\"web-1\",container=\"a\",job=%q} %g %d\n",
				job, total, at)
		}
		fmt.Fprintf(&memory, "container_memory_working_set_bytes{namespace=\"shop\",pod=\"web-1\",container=\"a\"} %d %d\n",
			1000+minute, at)
		fmt.Fprintf(&memory, "container_memory_working_set_bytes{namespace=\"shop\",pod=\"web-1\",container=\"b\"} 500 %d\n", at)
		fmt.Fprintf(&memory, "container_memory_working_set_bytes{namespace=\"shop\",pod=\"web-1\",container=\"\"} 99999999 %d\n", at)
		fmt.Fprintf(&owner, "kube_pod_owner{namespace=\"shop\",pod=\"web-1\",owner_kind=\"ReplicaSet\",owner_name=\"web-abc\","+
			"owner_is_controller=\"true\"} 1 %d\n", at)
		fmt.Fprintf(&set, "kube_replicaset_owner{namespace=\"shop\",replicaset=\"web-abc\",owner_kind=\"Deployment\","+
			"owner_name=\"web\",owner_is_controller=\"true\"} 1 %d\n", at)
		total += float64(minute/60) / 10 * 60
	}
	return "# TYPE container_cpu_usage_seconds counter\n" + cpu.String() + "# TYPE container_memory_working_set_bytes gauge\n" +
		memory.String() + "# TYPE kube_pod_owner gauge\n" + owner.String() + "# TYPE kube_replicaset_owner gauge\n" +
		set.String() + "# EOF\n"
}

// startPrometheus starts a server with such series, and returns its address.
func startPrometheus(t *testing.T, begin int64) string {
	for _, program := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("no " + program + ": make deps installs the package prometheus")
		}
	}
	folder := t.TempDir()
	text, data := filepath.Join(folder, "series.om"), filepath.Join(folder, "data")
	config := filepath.Join(folder, "prometheus.yml")
	if err := errors.Join(os.WriteFile(text, []byte(openMetrics(begin)), 0o600), os.WriteFile(config, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", text, data).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+data, "--web.listen-address="+address,
		"--storage.tsdb.retention.time=10y", "--log.level=error")
	server.Stderr, server.SysProcAttr = t.Output(), &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if answer, err := http.Get("http://" + address + "/-/ready"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return "http://" + address
			}
		}
		if time.Now().After(end) {
			t.Fatal("Prometheus does not begin to serve")
		}
	}
}

func TestARealPrometheus(t *testing.T) {
	begin := time.Now().UTC().Truncate(24 * time.Hour).Add(-48 * time.Hour).Unix()
	options := DefaultPrometheus()
	options.Address = startPrometheus(t, begin)
	p, err := NewPrometheus(options)
	if err != nil {
		t.Fatal(err)
	}
	c := profile.NewCollector(profile.Default())
	samples := int64(0)
	for hour := range int64(24) {
		out, err := p.Collect(context.Background(), begin+hour*3600, begin+(hour+1)*3600, c.Add)
		if err != nil || len(out.Dropped) > 0 {
			t.Fatalf("hour %d: %v, dropped %v", hour, err, out.Dropped)
		}
		samples += out.Samples
	}
	if samples < 24*24-2 || samples > 24*24 { // at the very begin there is no rate yet
		t.Errorf("%d samples, want about %d", samples, 24*24)
	}
	profiles := c.Profiles(begin + 86399)
	if len(profiles) != 1 || profiles[0].Workload.String() != "Deployment shop/web" {
		t.Fatalf("%+v", profiles)
	}
	for hour := range int64(24) {
		// The rate of the last five minutes is that of the hour before in the first of twelve samples. The counter that
		// begins anew at noon takes a minute from the first sample after it. So the percentile, the eleventh of twelve, is
		// the rate of the hour; but for what a bucket adds, less than 1/32, and less than one of what rounding adds.
		rate := hour * 100
		if got := profiles[0].Day[profile.CPU][hour]; got < rate || got > rate+rate/32+1 {
			t.Errorf("%d millicores at %d, want %d", got, hour, rate)
		}
		// The last sample of an hour is of minute 55.
		if got, want := profiles[0].Day[profile.Memory][hour], 1000+hour*60+55+500; got != want {
			t.Errorf("%d bytes at %d, want %d", got, hour, want)
		}
	}
	_, err = p.Collect(context.Background(), begin-86400*30, begin-86400*30+3600, c.Add)
	if err == nil || !strings.Contains(err.Error(), "no pod has an owner") {
		t.Errorf("a time without series: %v", err)
	}
}
