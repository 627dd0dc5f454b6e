package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// operator is the release whose definitions of its kinds are taken. It is no requirement of this module: of all that it
// holds only these files are wanted.
const operator = "github.com/prometheus-operator/prometheus-operator@v0.85.0"

func operatorFile(ctx context.Context, name string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", operator).Output()
	if err != nil {
		return nil, fmt.Errorf("downloading %s: %w: %s", operator, err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(module.Dir, "example/prometheus-operator-crd", name))
}
