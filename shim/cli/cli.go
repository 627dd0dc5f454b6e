// Package cli holds the commands of loadline, which kubectl also runs as `kubectl loadline`.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"loadline.dev/shim/report/texttable"
)

// Exit codes of Run.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// pluginName is what the program is called as a plugin of kubectl.
const pluginName = "kubectl-loadline"

// dropInName is the name of the program where it replaces Cluster Autoscaler: it is the autoscaler then.
const dropInName = "cluster-autoscaler"

// Streams are where a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// usageError is the fault of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitError ends the program with a code of its own.
type exitError struct {
	code int
	error
}

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// Run runs the command line `args`, of which the first is the name of the program, and returns the exit code: 0, 1 when
// it failed, 2 when the command line is wrong.
func Run(ctx context.Context, args []string, streams Streams) int {
	app := &app{streams: streams}
	root := app.newRoot(filepath.Base(args[0]))
	root.SetArgs(args[1:])
	err := root.ExecuteContext(context.WithValue(ctx, warner{}, app))
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(streams.Err, "error: %s\n", escapeLines(err.Error()))
	if wrong := (usageError{}); errors.As(err, &wrong) || !app.running {
		fmt.Fprintf(streams.Err, "See '%s --help' for usage.\n", root.CommandPath())
		return exitUsage
	}
	if own := (exitError{}); errors.As(err, &own) {
		return own.code
	}
	return exitFailure
}

// Command returns the tree of commands, for those who describe it.
func Command() *cobra.Command { return (&app{}).newRoot("loadline") }

// escapeLines escapes a message that may quote what others wrote, but keeps its line breaks.
func escapeLines(message string) string {
	lines := strings.Split(strings.ReplaceAll(message, "\t", "  "), "\n")
	for i := range lines {
		lines[i] = texttable.Escape(lines[i])
	}
	return strings.Join(lines, "\n")
}

// app is one run of the program.
type app struct {
	streams Streams
	running bool // the command line was understood; what fails from now on is no wrong usage
	warned  map[string]bool
}

// warn tells people what they should know beside the answer, once.
func (a *app) warn(warnings []string) {
	if a.warned == nil {
		a.warned = map[string]bool{}
	}
	for _, warning := range warnings {
		if !a.warned[warning] {
			fmt.Fprintf(a.streams.Err, "warning: %s\n", escapeLines(warning))
		}
		a.warned[warning] = true
	}
}

// warner is the key under which the context of a command has the app.
type warner struct{}

// warnBeside has the app of a command warn.
func warnBeside(ctx context.Context, warnings ...string) {
	if a, is := ctx.Value(warner{}).(*app); is {
		a.warn(warnings)
	}
}

func (a *app) newRoot(program string) *cobra.Command {
	if program == dropInName {
		return a.started(a.newAutoscaler(dropInName))
	}
	root := a.started(&cobra.Command{
		Use:     "loadline",
		Version: Version,
		Short:   "Place pods by what they are allowed to use",
		Long: `Loadline looks at what the pods on each node may use, their limits, over what the node offers to pods:
the load of a node. It tells how loaded the nodes are, which node it prefers for a pod, and why.

The cluster is the one of your kubeconfig, or with -f what 'kubectl get nodes,pods -A -o json' printed.`,
	})
	if program == pluginName {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl loadline"}
	}
	root.AddCommand(a.newScore(), a.newTop(), a.newWhy(), a.newWhyNot(), a.newFit(), a.newRank(), a.newSize(),
		a.newSlack(), a.newBill(), a.newConsolidate(), a.newDrain(), a.newPlan(), a.newReplay(), a.newSimulate(),
		a.newScenario(), a.newSweep(), a.newGateway(), a.newAutoscaler("autoscaler"), a.newProvider(), a.newUsage(),
		a.newGenerateLoad(), a.newVersion())
	completeFlags(root)
	return root
}

// started returns a command as the first one of a program.
func (a *app) started(root *cobra.Command) *cobra.Command {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRun = func(*cobra.Command, []string) { a.running = true }
	root.SetIn(a.streams.In)
	root.SetOut(a.streams.Out)
	root.SetErr(a.streams.Err)
	root.SetVersionTemplate(root.Name() + " {{.Version}}\n")
	return root
}
