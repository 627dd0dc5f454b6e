package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"loadline.dev/shim/freeport"
)

// BuildCommands builds what documents call beside our own programs: kubectl and Helm.
func BuildCommands(ctx context.Context, log Logf) error {
	if _, err := Build(ctx, log, Kubectl); err != nil {
		return err
	}
	return BuildHelm(ctx)
}

// Shell runs a command of a document as somebody who has loadline, kubectl and Helm in PATH, in the top folder of the
// tree, and returns all that it prints. BuildCommands has to come before.
func (c *Cluster) Shell(ctx context.Context, command string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", shellArgs(command)...)
	var err error
	if cmd.Dir, err = Root(); err != nil {
		return "", err
	}
	if cmd.Env, err = c.shellEnv(); err != nil {
		return "", err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	return string(out), nil
}

// StartAutoscalerCommand starts an autoscaler by a command of a document, which begins with loadline, and waits until
// it is ready. Further flags take part as if they were at the end of the command. BuildCommands has to come before.
func (c *Cluster) StartAutoscalerCommand(ctx context.Context, name, command string,
	flags ...string) (*Autoscaler, error) {
	port, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	env, err := c.shellEnv()
	if err != nil {
		return nil, err
	}
	// The function, and not a change of the command, adds the flags: the command may end with a comment.
	flags = append(slices.Clone(flags), "--bind-address="+address)
	script := `loadline() { exec "$(type -P loadline)" "$@" ` + strings.Join(flags, " ") + "; }\n" + command
	a := &Autoscaler{url: "http://" + address, cluster: c}
	a.spec = processSpec{name: name, path: "/bin/bash", args: shellArgs(script), env: env,
		ready: func(ctx context.Context) error { return c.getOK(ctx, a.url+"/readyz") }}
	return a, a.Restart(ctx)
}

func shellArgs(command string) []string { return []string{"-eu", "-o", "pipefail", "-c", command} }

// shellEnv is the environment of commands of documents. Whatever they keep at home is removed with the cluster.
func (c *Cluster) shellEnv() ([]string, error) {
	loadline, err := LoadlineCLI.Path()
	if err != nil {
		return nil, err
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	path := []string{filepath.Dir(loadline), c.bin, filepath.Join(root, "build/e2e/bin"), os.Getenv("PATH")}
	return append(passOn("LOADLINE_LIBRARY"), "KUBECONFIG="+c.Kubeconfig, "HOME="+c.Dir(), "LC_ALL=C",
		"PATH="+strings.Join(path, ":")), nil
}
