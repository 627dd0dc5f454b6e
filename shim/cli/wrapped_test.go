package cli

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/text/encoding/unicode"
)

// Files that people write are read as PowerShell and gzip leave them. The answer is that of the plain files.
func TestFilesInUTF16AndGzip(t *testing.T) {
	files := map[string]string{
		"config": `apiVersion: loadline.dev/v1alpha1
kind: AutoscalerConfiguration
scaleUp: {maxNodesTotal: 2}
`,
		"scheduler-config-file": `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
`,
		"rank-policy": `apiVersion: loadline.dev/v1alpha1
kind: RankPolicy
preset: proposal
`,
		"prices": "instance_type,on_demand_usd_per_hour\nm5.large,0.096\n",
	}
	utf16 := func(text []byte) []byte {
		out, err := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().Bytes(text)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	gzipped := func(text []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write(text)
		w.Close()
		return out.Bytes()
	}
	want := ""
	for _, wrap := range []func([]byte) []byte{func(text []byte) []byte { return text }, utf16, gzipped} {
		args := []string{"plan", "-f", "testdata/plan.yaml", "--groups", "testdata/plan-groups.yaml"}
		for flag, text := range files {
			name := filepath.Join(t.TempDir(), flag)
			if err := os.WriteFile(name, wrap([]byte(text)), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--"+flag, name)
		}
		out, errs, code := run(t, "loadline", "", args...)
		if want == "" {
			want = out
		}
		if code != 0 || out != want {
			t.Errorf("exit %d, %s%s\nwant %s", code, errs, out, want)
		}
	}
}
