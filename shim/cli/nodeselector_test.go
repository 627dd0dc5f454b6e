package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// twoPools has the nodes general-1 and memory-1, each in the pool of its name.
const twoPools = "../../test/field/pools-without-a-file-of-groups/input.yaml"

// Every form lists the nodes with the labels, and no other; the verdict stays that of all nodes.
func TestSelectorChoosesNodes(t *testing.T) {
	const selector = "cloud.google.com/gke-nodepool=general"
	for args, verdict := range map[string]string{
		"top": "", "drain --now 2026-11-20T12:00:00Z": "no node can go", "score shop/web-0": "",
		"fit shop/web-0": "fits on 1 of 2 nodes", "why-not shop/cache-1": "2 Insufficient cpu",
		"why-not shop/cache-1 --by-node": "2 Insufficient cpu"} {
		command := append(strings.Fields(args), "-f", twoPools, "-l", selector)
		for _, form := range []string{"table", "wide", "json", "yaml", "html", "go-template={{.}}"} {
			out, errs, code := run(t, "loadline", "", append(command, "-o", form)...)
			if form == formHTML && strings.Contains(errs, `-o "html": must be one of`) {
				continue // the command has no page
			}
			if code != 0 || !strings.Contains(out, "general-1") || strings.Contains(out, "memory-1") {
				t.Errorf("%s -o %s: exit %d: %s%s", args, form, code, out, errs)
			}
			if form == formTable && (!strings.Contains(out, verdict) || !strings.Contains(out, "1 of 2 nodes is listed")) {
				t.Errorf("%s: lacks %q or the note: %s", args, verdict, out)
			}
		}
	}
}

// Totals are of both nodes: 8 of 8 and 2 of 2 cores, as JSON says beside the selector.
func TestSelectorLeavesTotals(t *testing.T) {
	out, errs, code := run(t, "loadline", "", "top", "-f", twoPools, "--selector", "node.kubernetes.io/instance-type in "+
		"(n1-standard-2)", "-o", "json")
	var got topAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatal(err, errs)
	}
	if len(got.Nodes) != 1 || got.Nodes[0].Node != "general-1" || got.Total[0].Requests != 10_000 ||
		got.Total[0].Allocatable != 10_000 || !strings.Contains(got.Selector, "n1-standard-2") {
		t.Errorf("got %+v", got)
	}
	if out, errs, code = run(t, "loadline", "", "top", "-f", twoPools, "-l", "a=b", "-o", "name"); code != 0 || out != "" {
		t.Errorf("no node has the label: exit %d: %s%s", code, out, errs)
	}
	cluster, profiles := useCluster(t)
	var use useAnswer
	out, errs, _ = run(t, "loadline", "", "top", "-f", cluster, "--usage", profiles, "-l", "pool", "-o", "json")
	if err := json.Unmarshal([]byte(out), &use); err != nil || len(use.Nodes) > 0 || len(use.Safe) != 2 {
		t.Errorf("expected use: %s%s", out, errs)
	}
}

func TestSelectorIsRefused(t *testing.T) {
	for args, want := range map[string]string{
		"top -l a,,b": `--selector "a,,b": `, "drain -l =": `--selector "=": `,
		"fit shop/cache-1 -l a=b=c":         `--selector "a=b=c": `,
		"top --lines 1 -l a":                "--selector: not with --lines",
		"why-not shop/cache-1 memory-1 -la": "--selector: not with NODE or --groups",
	} {
		out, errs, code := run(t, "loadline", "", append(strings.Fields(args), "-f", twoPools)...)
		if code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d: %s%s", args, code, out, errs)
		}
	}
}
