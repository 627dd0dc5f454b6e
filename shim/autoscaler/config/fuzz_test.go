package config

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// FuzzLoad: a file is read or refused, and what was read and is right is the same when it is written and read again.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{"", head, head + "mode: act\n",
		head + "scaleDown: {maxDrainParallelism: 3, scaleDownUnneededTime: 90s}\n",
		head + "scanInterval: -1s\n", head + "scaleDown: {coresTotal: \"9:1\"}\n", head + "unknown: 1\n",
		head + "decisions: [scaleUp, slack]\n",
		head + "slack: {extraCapacityMinRate: .nan}\n", "a: &a [*a]", head + "kubeClientQPS: 1e300\n"} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(dir, "config.yaml")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c := Default()
		if c.Load(file) != nil || c.Check() != nil {
			return
		}
		if err := c.Write(file, nil); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again := Default()
		if err := again.Load(file); err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("read %+v, then %+v, error %v", c, again, err)
		}
	})
}
