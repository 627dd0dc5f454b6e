package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/dump"
	"loadline.dev/shim/policy"
	"loadline.dev/shim/workload"
)

// candidatesHelp is part of the help of each command that scores.
const candidatesHelp = `POD is [NAMESPACE/]NAME of a pod that waits for a node or of one that has one. A pod that has a
node is taken off it first, and scored as if it was to be placed anew. With -p the pod is read from a
file instead, as from a manifest.

Nodes on which the pod fits are candidates, as they are for a scheduler, and those that cannot be judged,
as ` + "`loadline fit`" + ` has them; the others are listed below with their reason.`

// podFlags say which pod a command is about, in which cluster, and how to score it.
type podFlags struct {
	inquiry
	podFile  string
	manifest *v1.Pod      // that of podFile, once it was read
	policy   *policyFlags // nil: the command scores nothing
	filters  bool         // the command asks where the pod fits, by how filters are configured
	how      filterFlags
	use      useFlags // by which pods count in the score
}

func addPodFlags(command *cobra.Command, p *podFlags, forms ...string) {
	p.policy = addPolicyFlags(command.Flags())
	p.use.addTo(command.Flags())
	addPodFlagsWithoutPolicy(command, p, forms...)
}

func addPodFlagsWithoutPolicy(command *cobra.Command, p *podFlags, forms ...string) {
	flags := command.Flags()
	flags.StringVarP(&p.podFile, "pod-file", "p", "",
		"manifest of the pod, or of what makes such pods, YAML or JSON; - is standard input")
	p.inquiry.addTo(flags, forms...)
}

// podQuestion is a pod to be placed in a cluster.
type podQuestion struct {
	*cluster
	name   podName
	policy policy.Policy
	how    *loadlinev1.FitOptions
	fitted *fitAnswer // once it was asked where the pod fits
}

// question loads cluster and pod. The caller closes the cluster.
func (p *podFlags) question(ctx context.Context, stdin io.Reader, args []string) (*podQuestion, error) {
	if err := p.output.check(); err != nil {
		return nil, err
	}
	var how policy.Policy
	if p.policy != nil {
		var err error
		if how, err = p.policy.policy(); err != nil {
			return nil, err
		}
	}
	p.use.onto(&how)
	profiles, err := p.use.profiles(ctx, &p.sourceFlags)
	if err != nil {
		return nil, err
	}
	fit, err := p.how.fit(ctx)
	if err != nil {
		return nil, err
	}
	name, pod, err := p.pod(ctx, stdin, args)
	if err != nil {
		return nil, err
	}
	c, err := load(ctx, &p.sourceFlags, p.engine, stdin, loadOptions{asked: &name, filters: p.filters,
		planning: how.BlockersTogether > 0, fit: fit, selectors: selectors(fit), profiles: profiles})
	if err != nil {
		return nil, err
	}
	if pod != nil {
		if c.pod != nil { // the one in the cluster only tells where it is
			pod.Spec.NodeName = c.pod.Spec.NodeName
		}
		c.pod = pod
	}
	if c.pod == nil {
		err := c.missing(name, p.sourceFlags.name())
		c.close()
		return nil, err
	}
	return &podQuestion{cluster: c, name: name, policy: how, how: fit}, nil
}

// pod returns the name of the pod and, with -p, the pod.
func (p *podFlags) pod(ctx context.Context, stdin io.Reader, args []string) (podName, *v1.Pod, error) {
	switch {
	case p.podFile == "" && len(args) == 0:
		return podName{}, nil, usagef("name a POD, or give one with -p FILE")
	case p.podFile != "" && len(args) > 0:
		return podName{}, nil, usagef("POD and -p exclude each other")
	case p.podFile == "-" && p.fromStdin():
		return podName{}, nil, usagef("-p and -f cannot both read standard input")
	case p.podFile == "":
		name, err := p.parsePod(args[0])
		return name, nil, err
	}
	if p.manifest == nil {
		var err error
		if p.manifest, err = readPod(ctx, p.podFile, stdin, p.givenNamespace()); err != nil {
			return podName{}, nil, err
		}
	}
	return podName{p.manifest.Namespace, p.manifest.Name}, p.manifest, nil
}

// readPod reads a file that holds one pod, or one object that makes pods, as it will be once it is submitted. A
// namespace given with -n is that of a manifest without one, and must be that of any other.
func readPod(ctx context.Context, file string, stdin io.Reader, namespace string) (*v1.Pod, error) {
	var pods []*v1.Pod
	_, err := dump.ReadFiles(ctx, []string{file}, stdin, dump.Handler{
		Node: func(*v1.Node) error { return nil },
		Pod: func(pod *v1.Pod) error {
			pods = append(pods, pod)
			return nil
		},
		Manifests: true,
	})
	if err != nil {
		return nil, err
	}
	if len(pods) == 0 {
		return nil, fmt.Errorf("%s holds no pod: give a Pod, or what makes pods, such as a Deployment or a Job", file)
	}
	if len(pods) != 1 {
		return nil, fmt.Errorf("%s holds %d pods, want one", file, len(pods))
	}
	pod := pods[0]
	if namespace != "" && pod.Namespace != namespace && pod.Namespace != metav1.NamespaceDefault {
		return nil, usagef("-n %s: the pod in %s is of namespace %s", namespace, file, pod.Namespace)
	}
	if namespace != "" {
		pod.Namespace = namespace
	}
	pod.Spec.NodeName = ""
	workload.Submitted(&pod.Spec)
	return pod, nil
}
