package harness

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/freeport"
)

// A containerProcess is what a container becomes on this machine.
type containerProcess struct {
	processSpec // ready is the startup probe
	readiness   func(context.Context) error
}

// make turns a container into a process. Its image has the name of one of our programs.
func (p *runningPod) make(ctx context.Context, container v1.Container) (*containerProcess, error) {
	name, _, _ := strings.Cut(path.Base(container.Image), ":")
	program, err := Program(name).Path()
	if err != nil {
		return nil, err
	}
	moved, err := p.movePorts(container.Ports)
	if err != nil {
		return nil, err
	}
	var places []string // pairs for a replacer: a path in the container, the one in its place here
	for _, mount := range container.VolumeMounts {
		places = append(places, mount.MountPath+"/", filepath.Join(p.dir, mount.Name)+"/")
	}
	here := strings.NewReplacer(places...)
	kubeconfig := ""
	for _, mount := range container.VolumeMounts {
		i := slices.IndexFunc(p.pod.Spec.Volumes, func(v v1.Volume) bool { return v.Name == mount.Name })
		if i < 0 {
			return nil, fmt.Errorf("there is no volume %s", mount.Name)
		}
		if p.pod.Spec.Volumes[i].Projected != nil {
			if kubeconfig, err = p.token(ctx); err != nil {
				return nil, err
			}
		}
	}
	for _, mount := range container.VolumeMounts {
		texts := func(text string) string { return moved(here.Replace(text)) }
		if err := p.fill(ctx, mount.Name, texts, kubeconfig); err != nil {
			return nil, err
		}
	}
	made := &containerProcess{processSpec: processSpec{name: p.pod.Name + "-" + container.Name, path: program}}
	for _, arg := range slices.Concat(container.Args, p.runner.Args[container.Name]) {
		made.args = append(made.args, moved(here.Replace(arg)))
	}
	if kubeconfig != "" {
		made.env = append(made.env, "KUBECONFIG="+kubeconfig)
		if Program(name) == LoadlineScheduler { // knows no variable, and the folder of tokens is not ours to fill
			made.args = append(made.args, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
		}
	}
	made.env = append(made.env, p.variables(container, here)...)
	made.ready, made.readiness = p.probe(container.StartupProbe, here), p.probe(container.ReadinessProbe, here)
	return made, nil
}

// variables returns the environment that a container states.
func (p *runningPod) variables(container v1.Container, here *strings.Replacer) (env []string) {
	for _, variable := range container.Env {
		value := here.Replace(variable.Value)
		if variable.ValueFrom != nil {
			value = fieldOf(p.pod, variable.ValueFrom.FieldRef.FieldPath)
		}
		env = append(env, variable.Name+"="+value)
	}
	return env
}

// token returns a kubeconfig of the pod's account.
func (p *runningPod) token(ctx context.Context) (string, error) {
	p.runner.tokens.Lock()
	defer p.runner.tokens.Unlock()
	return p.runner.cluster.ServiceAccountKubeconfig(ctx, p.pod.Namespace, p.pod.Spec.ServiceAccountName)
}

// movePorts takes a free port of this machine for each of a container, and returns what puts them into a text: in the
// place of numbers at the end of a line after a colon or an equals sign.
func (p *runningPod) movePorts(ports []v1.ContainerPort) (moved func(text string) string, err error) {
	free := map[string]string{}
	for _, port := range ports {
		number, err := freeport.Port()
		if err != nil {
			return nil, err
		}
		p.runner.mu.Lock()
		p.ports[port.Name] = number
		p.runner.mu.Unlock()
		free[strconv.Itoa(int(port.ContainerPort))] = strconv.Itoa(number)
	}
	return func(text string) string {
		return portAtEnd.ReplaceAllStringFunc(text, func(found string) string {
			return found[:1] + cmp.Or(free[found[1:]], found[1:])
		})
	}, nil
}

var portAtEnd = regexp.MustCompile(`(?m)[:=][0-9]+$`)

// fill makes the folder of a volume with what is in it. Files of ConfigMaps are changed by texts.
func (p *runningPod) fill(ctx context.Context, name string, texts func(string) string, kubeconfig string) error {
	dir := filepath.Join(p.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	i := slices.IndexFunc(p.pod.Spec.Volumes, func(v v1.Volume) bool { return v.Name == name })
	volume, client := p.pod.Spec.Volumes[i], p.runner.cluster.Client.CoreV1()
	files := map[string][]byte{}
	switch {
	case volume.ConfigMap != nil:
		object, err := client.ConfigMaps(p.pod.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		maps.Copy(files, object.BinaryData)
		for key, text := range object.Data {
			files[key] = []byte(texts(text))
			if kubeconfig != "" && strings.Contains(text, "kind: KubeSchedulerConfiguration") {
				if files[key], err = (Site{Kubeconfig: kubeconfig}).Apply(files[key]); err != nil {
					return err
				}
			}
		}
	case volume.Secret != nil:
		object, err := client.Secrets(p.pod.Namespace).Get(ctx, volume.Secret.SecretName, metav1.GetOptions{})
		optional := volume.Secret.Optional != nil && *volume.Secret.Optional
		if err != nil && (!optional || !apierrors.IsNotFound(err)) {
			return err
		}
		if err == nil {
			files = object.Data
		}
	}
	for key, content := range files {
		if err := os.WriteFile(filepath.Join(dir, key), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// probe returns what a probe asks, or nil where there is none.
func (p *runningPod) probe(probe *v1.Probe, here *strings.Replacer) func(context.Context) error {
	switch {
	case probe != nil && probe.HTTPGet != nil:
		ask := probe.HTTPGet
		return func(ctx context.Context) error {
			p.runner.mu.Lock()
			port := p.ports[ask.Port.String()]
			p.runner.mu.Unlock()
			url := fmt.Sprintf("%s://127.0.0.1:%d%s", strings.ToLower(string(ask.Scheme)), port, ask.Path)
			return p.runner.cluster.getOK(ctx, url)
		}
	case probe != nil && probe.Exec != nil:
		return func(ctx context.Context) error {
			program, err := Program(probe.Exec.Command[0]).Path()
			if err != nil {
				return err
			}
			var args []string
			for _, arg := range probe.Exec.Command[1:] {
				args = append(args, here.Replace(arg))
			}
			if out, err := exec.CommandContext(ctx, program, args...).CombinedOutput(); err != nil {
				return fmt.Errorf("%s %q: %w: %s", program, args, err, out)
			}
			return nil
		}
	}
	return nil
}
