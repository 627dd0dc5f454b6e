package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/dump"
	"loadline.dev/shim/filterconfig"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/slack"
)

const (
	// completionTimeout bounds what a shell waits for.
	completionTimeout = 3 * time.Second
	// mostCompleted is how many names of a kind are listed of a live cluster.
	mostCompleted = 1000
)

// namesOf lists names that complete a word. Errors leave names out: a shell shows none.
type namesOf func(ctx context.Context, word string) []string

// completeArgs completes the arguments of a command: each by the names that its place takes.
func completeArgs(places ...[]namesOf) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(places) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, completionTimeout)
		defer cancel()
		var names []string
		for _, of := range places[len(args)] {
			names = append(names, of(ctx, word)...)
		}
		slices.Sort(names)
		names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return !strings.HasPrefix(name, word) })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// nodeNames completes a node.
func (s *sourceFlags) nodeNames(ctx context.Context, _ string) (names []string) {
	if s.fromFile() {
		s.inFile(ctx, func(node *v1.Node) { names = append(names, node.Name) }, func(*v1.Pod) {})
		return names
	}
	client, err := s.client()
	if err != nil {
		return nil
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: mostCompleted})
	if err != nil {
		return nil
	}
	for i := range nodes.Items {
		names = append(names, nodes.Items[i].Name)
	}
	return names
}

// podNames completes a pod: [NAMESPACE/]NAME, of the namespace that holds without one.
func (s *sourceFlags) podNames(ctx context.Context, word string) (names []string) {
	namespace, _, prefixed := strings.Cut(word, "/")
	if !prefixed {
		namespace = s.defaultNamespace()
	}
	add := func(pod *v1.Pod) {
		switch {
		case prefixed && pod.Namespace == namespace:
			names = append(names, pod.Namespace+"/"+pod.Name)
		case !prefixed && pod.Namespace == namespace:
			names = append(names, pod.Name)
		case !prefixed && s.fromFile():
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
	}
	if s.fromFile() {
		s.inFile(ctx, func(*v1.Node) {}, add)
		return names
	}
	client, err := s.client()
	if err != nil {
		return nil
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: mostCompleted})
	if err != nil {
		return nil
	}
	for i := range pods.Items {
		add(&pods.Items[i])
	}
	return names
}

func (s *sourceFlags) inFile(ctx context.Context, node func(*v1.Node), pod func(*v1.Pod)) {
	if s.fromStdin() {
		return // it is read by the command
	}
	_, _ = dump.ReadFiles(ctx, s.files, nil, dump.Handler{
		Node:   func(n *v1.Node) error { node(n); return nil },
		Pod:    func(p *v1.Pod) error { pod(p); return nil },
		Broken: func(dump.Broken) {},
	})
}

// groupNames completes a node group of a file.
func groupNames(file *string) namesOf {
	return func(context.Context, string) (names []string) {
		groups, err := loadGroups(*file)
		if err != nil {
			return nil
		}
		for i := range groups.Groups {
			names = append(names, groups.Groups[i].Name())
		}
		return names
	}
}

// valuesOf holds the values of flags that are the same for each command.
var valuesOf = map[string]func() []string{
	"slack-version": slack.Versions, "slack-basis": slack.Bases, "rank-preset": ranking.Presets,
	"strategies": ranking.Strategies, "preferred-table": ranking.PreferredTables,
	"decisions":          func() []string { return config.AllDecisions },
	"kubernetes-version": filterconfig.Releases, "upstream-defects": filterconfig.Defects,
}

// completeFlags completes the values of flags that are chosen from a few, of a command and those below it.
func completeFlags(command *cobra.Command) {
	all := maps.Clone(valuesOf)
	for _, name := range []string{"output", "mode", "sort-by"} {
		all[name] = func() []string { return command.Flag(name).Annotations[formsAnnotation] }
	}
	all["context"], all["contexts"], all["namespace"] = contexts(command), contexts(command), namespaces(command)
	for name, values := range all {
		flag := command.Flags().Lookup(name)
		if flag == nil {
			continue
		}
		complete := func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
			return completions(flag, values(), word), cobra.ShellCompDirectiveNoFileComp
		}
		if err := command.RegisterFlagCompletionFunc(name, complete); err != nil {
			panic(err) // a flag of this name was completed before: the fault of this program
		}
	}
	for _, child := range command.Commands() {
		completeFlags(child)
	}
}

// completions returns the values that complete a word; that of a list has others before its last comma.
func completions(flag *pflag.Flag, values []string, word string) (words []string) {
	before := ""
	if _, list := flag.Value.(pflag.SliceValue); list {
		before = word[:strings.LastIndexByte(word, ',')+1]
	}
	for _, value := range values {
		if strings.HasPrefix(before+value, word) && !slices.Contains(strings.Split(before, ","), value) {
			words = append(words, before+value)
		}
	}
	return words
}

// namespaces lists those of the pods of a dump, or of the cluster that a command reads.
func namespaces(command *cobra.Command) func() []string {
	return func() (names []string) {
		ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
		defer cancel()
		source := sourceOf(command)
		if source.fromFile() {
			source.inFile(ctx, func(*v1.Node) {}, func(pod *v1.Pod) { names = append(names, pod.Namespace) })
			slices.Sort(names)
			return slices.Compact(names)
		}
		client, err := source.client()
		if err != nil {
			return nil
		}
		all, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: mostCompleted})
		if err != nil {
			return nil
		}
		for i := range all.Items {
			names = append(names, all.Items[i].Name)
		}
		return names
	}
}

// sourceOf returns where a command finds the cluster, by those of its flags that were given.
func sourceOf(command *cobra.Command) *sourceFlags {
	var source sourceFlags
	own := pflag.NewFlagSet(command.Name(), pflag.ContinueOnError)
	addSourceFlags(own, &source)
	command.Flags().Visit(func(given *pflag.Flag) {
		flag := own.Lookup(given.Name)
		if flag == nil {
			return
		}
		from, list := given.Value.(pflag.SliceValue)
		if to, ok := flag.Value.(pflag.SliceValue); ok && list {
			_ = to.Replace(from.GetSlice()) // texts, as they were given
			return
		}
		_ = flag.Value.Set(given.Value.String()) // it was understood before
	})
	return &source
}

// contexts lists those of the kubeconfig that a command reads.
func contexts(command *cobra.Command) func() []string {
	return func() []string {
		cluster := clusterFlags{flags: newClusterFlags()}
		if flag := command.Flag("kubeconfig"); flag != nil {
			*cluster.flags.KubeConfig = flag.Value.String()
		}
		raw, err := cluster.config().RawConfig()
		if err != nil {
			return nil
		}
		return slices.Sorted(maps.Keys(raw.Contexts))
	}
}
