package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/cli"
)

// commands describes the command line.
func commands(string) (string, error) {
	var out strings.Builder
	out.WriteString(notice + "# loadline\n")
	for _, command := range cli.Command().Commands() {
		describe(&out, command)
	}
	return out.String(), nil
}

func describe(out *strings.Builder, command *cobra.Command) {
	if command.Hidden || command.Name() == "help" || command.Name() == "completion" {
		return
	}
	text := command.Long
	if text == "" {
		text = command.Short + "."
	}
	fmt.Fprintf(out, "\n## %s\n\n```text\n%s\n\n%s\n```\n", command.CommandPath(), command.UseLine(), text)
	if command.LocalFlags().HasAvailableFlags() {
		out.WriteString("\n| Flag | Default | |\n|---|---|---|\n")
		command.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			name := "`--" + f.Name + "`"
			if f.Shorthand != "" {
				name = "`-" + f.Shorthand + "`, " + name
			}
			value := f.DefValue
			if value != "" && value != "[]" {
				value = "`" + value + "`"
			} else {
				value = ""
			}
			_, usage := pflag.UnquoteUsage(f)
			fmt.Fprintf(out, "| %s | %s | %s |\n", name, cell(value), cell(usage))
		})
	}
	for _, sub := range command.Commands() {
		describe(out, sub)
	}
}

// cell is a text as a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}

// configuration prints the autoscaler's configuration file with its defaults.
func configuration(string) (string, error) {
	var out, complaints bytes.Buffer
	code := cli.Run(context.Background(), []string{"loadline", "autoscaler", "--write-config-to=-"},
		cli.Streams{In: strings.NewReader(""), Out: &out, Err: &complaints})
	if code != 0 {
		return "", fmt.Errorf("loadline autoscaler --write-config-to=-: %s", complaints.String())
	}
	return notice + "# The autoscaler's configuration\n\nEach key is a flag of " +
		"[loadline autoscaler](loadline.md#loadline-autoscaler) as well, which explains it. These are the defaults:\n\n" +
		"```yaml\n" + out.String() + "```\n", nil
}

// upstream says what becomes of the flags of Cluster Autoscaler that are no settings.
func upstream(string) (string, error) {
	var out strings.Builder
	out.WriteString(notice + "# Flags of Cluster Autoscaler\n\n" +
		"Flags that are not in this table mean what they mean there: they are those of " +
		"[loadline autoscaler](loadline.md#loadline-autoscaler). Of a flag without effect a line of the log says so, " +
		"and why.\n\n| Flag | | |\n|---|---|---|\n")
	for _, flag := range config.UpstreamFlags() {
		if flag.Kind != config.Setting {
			fmt.Fprintf(&out, "| `--%s` | %s | %s |\n", flag.Name, flag.Kind, cell(flag.Text))
		}
	}
	return out.String(), nil
}

// runbooks writes what the alerts say about themselves.
func runbooks(top string) (string, error) {
	var out strings.Builder
	out.WriteString(notice + "# Runbooks\n\nWhat to do about each alert of the folders `monitoring` in `manifests`. " +
		"The autoscaler's page says more than any metric: `kubectl -n kube-system " +
		"port-forward deploy/loadline-autoscaler 8085`.\n")
	for _, component := range []string{"autoscaler", "second-scheduler", "extender", "expander", "usage"} {
		if err := addRunbooks(&out, filepath.Join(top, "manifests", component, "monitoring", "30-rules.yaml")); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// addRunbooks writes what the alerts of one file say.
func addRunbooks(out *strings.Builder, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var rules struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr, For    string
					Labels, Annotations map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal(content, &rules); err != nil {
		return err
	}
	for _, group := range rules.Spec.Groups {
		for _, r := range group.Rules {
			if r.Annotations["runbook"] == "" {
				return fmt.Errorf("alert %s has no runbook", r.Alert)
			}
			fmt.Fprintf(out, "\n## %s\n\n%s, after %s: %s\n\n%s\n\n```promql\n%s\n```\n\n%s\n", r.Alert,
				strings.ToUpper(r.Labels["severity"][:1])+r.Labels["severity"][1:], r.For, r.Annotations["summary"],
				r.Annotations["description"], strings.TrimSpace(r.Expr), list(r.Annotations["runbook"]))
		}
	}
	return nil
}

// labelled is a line that says what to do about the words before its colon.
var labelled = regexp.MustCompile(`^[\w, ]+: `)

// list has the lines of a runbook as those of a list, unless they are numbered; a line that begins with spaces
// continues the one before.
func list(text string) string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch {
		case strings.HasPrefix(line, " ") || len(line) > 1 && line[0] >= '0' && line[0] <= '9' && line[1] == '.':
			out = append(out, line)
		case labelled.MatchString(line):
			out = append(out, "- "+line)
		case len(out) == 0:
			out = append(out, line)
		default:
			out = append(out, "  "+line)
		}
	}
	return strings.Join(out, "\n")
}
