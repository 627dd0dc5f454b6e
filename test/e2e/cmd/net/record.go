package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
)

// task is one recording: the questions about one world or one scenario, or one simulation.
type task struct {
	kind string
	seed uint64
}

const (
	ofLoops     = "loops"     // a world with a cloud, whose loops follow from each other
	ofScenarios = "scenarios" // a cluster with pods of all rules, in three loops
	ofDays      = "days"      // a simulation
)

func (t task) name() string              { return fmt.Sprintf("%s-%05d", t.kind, t.seed) }
func (t task) file(folder string) string { return filepath.Join(folder, t.name()+".gz") }

// tasks are so many recordings of each kind, mixed so that a part of them is like all.
func tasks(counts map[string]uint64) (all []task) {
	for seed := uint64(1); ; seed++ {
		before := len(all)
		for _, kind := range []string{ofLoops, ofScenarios, ofDays} {
			if seed <= counts[kind] {
				all = append(all, task{kind, seed})
			}
		}
		if len(all) == before {
			return all
		}
	}
}

// each runs a function for all tasks, several at a time, and calls done with the results in the order of the tasks.
func each[T any](all []task, do func(task) (T, error), done func(task, T)) error {
	type result struct {
		value T
		err   error
	}
	results := make([]chan result, len(all))
	for i := range results {
		results[i] = make(chan result, 1)
	}
	next := make(chan int)
	go func() {
		defer close(next)
		for i := range all {
			next <- i
		}
	}()
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range next {
				value, err := do(all[i])
				results[i] <- result{value, err}
			}
		})
	}
	for i, r := range results {
		got := <-r
		if got.err != nil {
			return fmt.Errorf("%s: %w", all[i].name(), got.err)
		}
		done(all[i], got.value)
	}
	wait.Wait()
	return nil
}

// mostDays is how long a simulation may take.
const mostDays = 9 * time.Minute

// record asks an engine of a library, and writes down all questions with its answers.
func record(ctx context.Context, library, folder string, t task) (err error) {
	conn, err := open(library)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	file, err := os.Create(t.file(folder))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	packed, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, packed.Close()) }()
	buffer := bufio.NewWriterSize(packed, 1<<16)
	defer func() { err = errors.Join(err, buffer.Flush()) }()
	recorder := engine.Record(conn, buffer)
	switch t.kind {
	case ofDays:
		ctx, cancel := context.WithTimeout(ctx, mostDays)
		defer cancel()
		_, _ = loadlinev1.NewAutoscalerClient(recorder).Simulate(ctx, drawDays(t.seed)) // a refusal is an answer
		return nil
	case ofScenarios:
		return driveScenario(ctx, t.seed, recorder)
	default:
		return drive(ctx, t.seed, recorder)
	}
}

func open(library string) (engine.Conn, error) {
	path, err := filepath.Abs(library)
	if err != nil {
		return nil, err
	}
	return engine.Open("inprocess://" + path)
}

// call is a recorded question with the recorded answer, and what another library says.
type call struct {
	*loadlinev1.RecordedCall
	engine.Replayed
	number int
}

// replay asks an engine of another library the questions of a recording, and visits each with both answers.
func replay(ctx context.Context, library, folder string, t task, visit func(*call)) (err error) {
	conn, err := open(library)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	file, err := os.Open(t.file(folder))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	packed, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	number := 0
	return engine.Replay(ctx, conn, packed, func(again engine.Replayed) error {
		visit(&call{again.Recorded, again, number})
		number++
		return nil
	})
}
