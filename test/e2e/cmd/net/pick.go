package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
)

// perPart is how many states there are to be with each thing that may be under way.
const perPart = 5

// mostPicked bounds the bytes of one question.
const mostPicked = 120_000

// pick takes questions with a state that has much under way out of recordings, each with its answer, and writes them
// to a folder: what another release has to go on from.
func pick(ctx context.Context, library, folder, out string, worlds uint64) error {
	have, picked := map[string]int{}, 0
	for seed := uint64(1); seed <= worlds; seed++ {
		var best *call
		var parts []string
		err := replay(ctx, library, folder, task{ofLoops, seed}, func(c *call) {
			if !strings.HasSuffix(c.GetMethod(), "/PlanLoop") || c.GetCode() != 0 || len(c.GetRequest()) > mostPicked {
				return
			}
			if all := underWay(c); worth(all, have) > worth(parts, have) {
				best, parts = c, all
			}
		})
		if err != nil {
			return err
		}
		if best == nil || worth(parts, have) == 0 {
			continue
		}
		for _, part := range parts {
			have[part]++
		}
		picked++
		fmt.Printf("state-%02d: seed %d: %s\n", picked, seed, strings.Join(parts, ", "))
		if err := write(filepath.Join(out, fmt.Sprintf("state-%02d.gz", picked)), best.RecordedCall); err != nil {
			return err
		}
	}
	return nil
}

// worth counts what a state has of which there is not enough yet.
func worth(parts []string, have map[string]int) (count int) {
	for _, part := range parts {
		if have[part] < perPart {
			count++
		}
	}
	return count
}

// underWay names what is under way in the state of a single question.
func underWay(c *call) (parts []string) {
	q, a := &loadlinev1.PlanLoopRequest{}, &loadlinev1.PlanLoopResponse{}
	if proto.Unmarshal(c.GetRequest(), q) != nil || proto.Unmarshal(c.GetResponse(), a) != nil ||
		q.GetOwn() == nil || q.GetState() == nil || len(q.GetFleet().GetState()) == 0 {
		return nil
	}
	note := func(name string, has bool) {
		if has && !slices.Contains(parts, name) {
			parts = append(parts, name)
		}
	}
	drain := q.GetState().GetDrain()
	note("timers", len(drain.GetUnneeded()) > 0)
	note("drains", len(q.GetFleet().GetUnderWay()) > 0 && len(drain.GetDeleting()) > 0)
	note("failed removals", len(drain.GetFailed()) > 0)
	note("evictions", len(drain.GetRecentEvictions()) > 0)
	note("slack", len(q.GetState().GetSlack().GetPlaceholders()) > 0)
	note("slack that shrinks", len(q.GetState().GetSlack().GetExcesses()) > 0)
	note("sizes", len(q.GetState().GetSize().GetGroups()) > 0)
	note("nodes on their way", len(a.GetUpcoming()) > 0)
	note("deletion costs", len(a.GetDeletionCosts()) > 0)
	for _, move := range a.GetReplacement().GetMoves() {
		note("move "+move.GetPhase(), move.GetSeconds() > 0)
	}
	for _, g := range a.GetFleet().GetGroups() {
		note("back-off", g.GetBackOff() != nil)
	}
	return parts
}

func write(path string, call *loadlinev1.RecordedCall) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	packed, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, packed.Close()) }()
	_, err = protodelim.MarshalTo(packed, call)
	return err
}
